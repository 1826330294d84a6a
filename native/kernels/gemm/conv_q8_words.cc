#include "kernels/gemm/conv_q8_words.h"

#include <algorithm>

#include "core/cpu_features.h"

namespace edgekit {
namespace {

constexpr WordKernel kKernels[] = {
    {nullptr, Isa::kScalar, nullptr, nullptr},  // an array has to hold something
#define EK_WORD_KERNEL(name, widen, space, isa) {#name, Isa::isa, space::name, space::widen},
#include "kernels/gemm/word_kernels.inc"
#undef EK_WORD_KERNEL
};

// The widened lines of a group should leave room for weights in the first-level cache.
constexpr int64_t kCopyBytes = 16 * 1024;
constexpr int64_t kMostCopyBytes = 256 * 1024;
constexpr int64_t kMostGroupChannels = 64;
constexpr int64_t kMostPointwiseChannels = 96;

// Of a tile of 6 x 16 on Zen 3: two words, and four bytes, of the depth.
constexpr double kWordCycles = 8.4, kByteCycles = 13.6;

constexpr size_t align_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

// What is known without the weights.
struct Shape {
  const WordKernel* kernel;  // null: a convolution of bytes
  ConvQ8Source source;
  ConvQ8Padding padding;
  int64_t groups, group_columns, panels, depth_groups;
  int64_t all_panels() const { return groups * panels; }
};

// Groups: bytes leave most of a wide panel empty, and each group has a border of its own.
bool gains_by_groups(const ConvQ8Attrs& a, const ConvQ8Source& s, int64_t group_columns) {
  const bool fills_panels = a.nr == kWordColumns || group_columns <= kWordColumns;
  return a.groups > 1 && s.channels <= kMostGroupChannels && int64_t{a.kernel_h} * a.kernel_w > 1 && fills_panels;
}

// Pointwise convolutions: where pairs of bytes would saturate so often that their list costs more. Of little depth:
// longer panels of words would not stay in the first-level cache. Not stems: widening 3 channels takes longer than it
// saves.
bool gains_by_pairs(const OpArgs& args, const ConvQ8Attrs& a, const ConvQ8Source& s, int64_t group_columns) {
  const bool is_pointwise = a.groups == 1 && int64_t{a.kernel_h} * a.kernel_w * a.stride_h * a.stride_w == 1;
  const WeightRows rows = weight_rows_of(args, (group_columns + a.nr - 1) / a.nr);
  if (!is_pointwise || s.channels > kMostPointwiseChannels || rows.starts == nullptr) return false;
  const auto words = static_cast<double>((group_columns + kWordColumns - 1) / kWordColumns * ((s.channels + 1) / 2));
  const auto bytes = static_cast<double>(args.in(7).dims[0] * (a.nr / kWordColumns));
  return words * kWordCycles < bytes * kByteCycles;
}

Shape shape_of(const OpArgs& args, Isa isa) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  Shape shape{};
  shape.source = conv_q8_source(args.in(0), args.out(0), a);
  const ConvQ8Source& s = shape.source;
  const int64_t group_columns = args.out(0).dims[3] / a.groups;
  const bool gains = gains_by_groups(a, s, group_columns) || gains_by_pairs(args, a, s, group_columns);
  if (!gains || a.nr % kWordColumns != 0 || args.in(0).dtype != Dtype::kU8) return shape;
  const int64_t pairs = (s.channels + 1) / 2;
  shape.padding = padding_of(s, pairs * 2 * static_cast<int64_t>(sizeof(uint16_t)), kCopyBytes, kMostCopyBytes);
  if (shape.padding.lines == 0) return shape;
  shape.groups = a.groups;
  shape.group_columns = group_columns;
  shape.panels = (shape.group_columns + kWordColumns - 1) / kWordColumns;
  shape.depth_groups = int64_t{a.kernel_h} * a.kernel_w * pairs;
  shape.kernel = word_kernel(isa);
  return shape;
}

// Memory of ConvQ8Words.
struct Lists {
  int64_t* offsets;
  int16_t* b;
  int32_t* bias;
  float* scale;
  size_t bytes;
};

Lists carve(const Shape& shape, std::byte* base) {
  const size_t columns = static_cast<size_t>(shape.all_panels() * kWordColumns);
  const size_t offsets = align_up(static_cast<size_t>(shape.depth_groups) * sizeof(int64_t));
  const size_t b = align_up(columns * static_cast<size_t>(shape.depth_groups) * 2 * sizeof(int16_t));
  const size_t bias = align_up(columns * sizeof(int32_t));
  return {reinterpret_cast<int64_t*>(base), reinterpret_cast<int16_t*>(base + offsets),
          reinterpret_cast<int32_t*>(base + offsets + b), reinterpret_cast<float*>(base + offsets + b + bias),
          offsets + b + 2 * bias};
}

// Bias and scale by panels; where pairs of words lie in a copy.
void fill_lists(const OpArgs& args, const Shape& shape, const Lists& to) {
  const auto* bias = args.in(2).as<const int32_t>();
  const auto* scale = args.in(3).as<const float>();
  for (int64_t group = 0; group < shape.groups; ++group) {
    const int64_t from = group * shape.group_columns, at = group * shape.panels * kWordColumns;
    std::copy_n(bias + from, shape.group_columns, to.bias + at);
    std::copy_n(scale + from, shape.group_columns, to.scale + at);
  }
  const ConvWindow& w = shape.source.window;
  int64_t* offset = to.offsets;
  for (int64_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
      const int64_t tap = ky * w.dilation_h * shape.padding.line_bytes() + kx * w.dilation_w * shape.padding.channels;
      for (int64_t byte = 0; byte < shape.padding.channels; byte += 4) *offset++ = tap + byte;
    }
  }
}

struct Scratch {
  uint16_t* copy;
  RowPointers at;
  size_t bytes;
};

Scratch carve(const ConvQ8Padding& padding, int64_t out_w, std::byte* base) {
  const size_t copy = align_up(static_cast<size_t>(padding.bytes));
  const size_t rows = align_up(static_cast<size_t>(padding.lines * out_w) * sizeof(uint8_t*));
  const auto list = [&](size_t i) { return base + copy + i * rows; };
  return {reinterpret_cast<uint16_t*>(base),
          {reinterpret_cast<const uint8_t**>(list(0)), reinterpret_cast<uint8_t**>(list(1)),
           reinterpret_cast<const uint8_t**>(list(2))},
          copy + 3 * rows};
}

// What lines of y read of one group, widened.
void widen_lines(const ConvQ8Source& s, const ConvQ8Words& words, const PaddedLines& lines, int64_t group,
                 uint16_t* to) {
  const int64_t step = words.padding.channels / static_cast<int64_t>(sizeof(uint16_t));
  for_each_padded_line(s, words.padding, lines, [&](const PaddedLine& line) {
    const auto fill = [&](int64_t begin, int64_t end) {
      std::fill(to + begin * step, to + end * step, static_cast<uint16_t>(s.x_zero));
    };
    fill(0, line.inside.begin);
    if (line.inside.begin < line.inside.end) {
      words.kernel->widen(line.from + group * s.channels, s.stride_w, line.inside.end - line.inside.begin, s.channels,
                          to + line.inside.begin * step, step);
    }
    fill(line.inside.end, words.padding.columns);
    to += words.padding.columns * step;
  });
}

}  // namespace

const WordKernel* word_kernel(Isa isa) {
  const WordKernel* best = nullptr;
  for (const WordKernel& kernel : kKernels) {
    if (kernel.run != nullptr && isa_includes(isa, kernel.isa)) best = &kernel;
  }
  return best;
}

size_t conv_q8_word_bytes(const OpArgs& args, Isa isa) {
  const Shape shape = shape_of(args, isa);
  return shape.kernel == nullptr ? 0 : carve(shape, nullptr).bytes;
}

ConvQ8Words make_conv_q8_words(const OpArgs& args, Isa isa, std::byte* lists) {
  const Shape shape = shape_of(args, isa);
  if (shape.kernel == nullptr) return {};
  const Lists to = carve(shape, lists);
  fill_lists(args, shape, to);
  const WordWeights weights{to.b, to.bias, shape.panels, shape.depth_groups};
  if (!unpack_words(args, shape.source, weights)) return {};
  return {shape.kernel, shape.padding, shape.panels, shape.depth_groups, to.offsets, to.b, to.bias, to.scale};
}

size_t conv_q8_word_scratch(const OpArgs& args, Isa isa) {
  const Shape shape = shape_of(args, isa);
  return shape.kernel == nullptr ? 0 : carve(shape.padding, shape.source.out_w, nullptr).bytes;
}

void run_conv_q8_words(const ConvQ8Task& task, const ConvQ8Words& words, Span rows, Span panels) {
  const ConvQ8Plan& plan = task.plan;
  const ConvQ8Source& s = plan.source;
  const Scratch scratch = carve(words.padding, s.out_w, task.scratch);
  const ConvQ8Images images{s, task.args.out(0), task.requantize.add ? task.args.inputs[5] : nullptr, {}, {}, 0};
  GemmQ8Rows tile{};
  tile.a = scratch.at.a;
  tile.y = scratch.at.y;
  tile.residual = scratch.at.residual;
  tile.offsets = words.offsets;
  tile.depth_groups = words.depth_groups;
  tile.requantize = &task.requantize;
  tile.nr = kWordColumns;
  while (rows.begin < rows.end) {
    const PaddedLines lines = padded_lines(s, words.padding, rows);
    tile.rows = lines.rows;
    const auto* copy = reinterpret_cast<const uint8_t*>(scratch.copy);
    provide_padded_rows(images, words.padding, {rows.begin, rows.begin + lines.rows}, copy, scratch.at);
    int64_t widened = -1;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t group = panel / plan.panels;
      if (group != widened) widen_lines(s, words, lines, group, scratch.copy);
      widened = group;
      const int64_t first = panel % plan.panels * plan.nr, end = std::min<int64_t>(first + plan.nr, plan.group_columns);
      for (int64_t column = first; column < end; column += kWordColumns) {
        const int64_t at = group * words.panels + column / kWordColumns;
        tile.b = reinterpret_cast<const int8_t*>(words.b + at * words.depth_groups * kWordColumns * 2);
        tile.bias = words.bias + at * kWordColumns;
        tile.scale = words.scale + at * kWordColumns;
        tile.columns = static_cast<int>(std::min<int64_t>(kWordColumns, end - column));
        tile.channel = group * plan.group_columns + column;
        words.kernel->run(tile);
      }
    }
    rows.begin += lines.rows;
  }
}

}  // namespace edgekit
