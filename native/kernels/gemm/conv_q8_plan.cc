#include "kernels/gemm/conv_q8_plan.h"

#include <algorithm>

namespace edgekit {
namespace {

// One past the highest byte that a view of bytes reaches; null while the view has no data yet.
const uint8_t* view_end(const TensorView& view) {
  if (view.data == nullptr) return nullptr;
  const uint8_t* last = view.as<const uint8_t>();
  for (int i = 0; i < view.rank; ++i) last += std::max<int64_t>(0, (view.dims[i] - 1) * view.strides[i]);
  return last + 1;
}

ConvQ8Source conv_source(const OpArgs& args, int kg) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  const TensorView& x = args.in(0);
  const TensorView& y = args.out(0);
  ConvQ8Source s{};
  s.x = x.as<const uint8_t>();
  s.end = view_end(x);
  s.stride_n = x.strides[0];
  s.stride_h = x.strides[1];
  s.stride_w = x.strides[2];
  s.h = x.dims[1];
  s.w = x.dims[2];
  s.out_h = y.dims[1];
  s.out_w = y.dims[2];
  s.window = conv_window(a);
  s.channels = x.dims[3] / a.groups;
  s.depth = int64_t{a.kernel_h} * a.kernel_w * s.channels;
  s.padded_depth = (s.depth + kg - 1) / kg * kg;
  s.x_zero = a.x_zero;
  // A stride along an extent of 1 means nothing.
  const bool dense_w = x.dims[2] == 1 || x.strides[2] == s.channels;
  const bool dense_h = x.dims[1] == 1 || x.strides[1] == int64_t{s.w} * s.channels;
  const bool dense_n = x.dims[0] == 1 || x.strides[0] == int64_t{s.h} * s.w * s.channels;
  s.joined = a.kernel_w == 1 || (dense_w && a.dilation_w == 1);
  const bool same_grid = s.h == s.out_h && s.w == s.out_w && a.stride_h == 1 && a.stride_w == 1;
  const bool pointwise = a.kernel_h == 1 && a.kernel_w == 1 && a.pad_top == 0 && a.pad_left == 0;
  s.contiguous = pointwise && same_grid && a.groups == 1 && dense_w && dense_h && dense_n && s.padded_depth == s.depth;
  return s;
}

// Rows of x can be used in place when every row of A is one run inside the image.
bool rows_in_place(const ConvQ8Source& s) {
  const ConvWindow& w = s.window;
  return w.kernel_h == 1 && w.kernel_w == 1 && w.pad_top <= 0 && w.pad_left <= 0 && w.first_row(s.out_h - 1) < s.h &&
         w.first_column(s.out_w - 1) < s.w;
}

// As many rows as fill about half of the level-2 cache's share, in equal blocks. The panel of B that sweeps over them
// stays in level 1.
int64_t rows_of_block(const ConvQ8Plan& plan) {
  constexpr int64_t kBlockBytes = 48 * 1024;
  const int64_t mr = plan.kernel->mr;
  const int64_t row_bytes = plan.source.padded_depth * plan.kernel->element_bytes;
  const int64_t most = std::clamp<int64_t>(kBlockBytes / row_bytes / mr, 4, 32) * mr;
  const int64_t blocks = (plan.rows + most - 1) / most;
  const int64_t even = (plan.rows + blocks - 1) / blocks;
  return (even + mr - 1) / mr * mr;
}

constexpr size_t align_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

// What one worker keeps: packed rows, row pointers, and bias and scale of a panel that is not full.
struct BlockScratch {
  std::byte* packed;
  const void** a;
  uint8_t** y;
  const uint8_t** residual;
  int32_t* bias;
  float* scale;
};

size_t packed_bytes(const ConvQ8Plan& plan) {
  const int64_t row_bytes = plan.source.padded_depth * plan.kernel->element_bytes;
  return align_up(static_cast<size_t>(plan.block_rows * row_bytes) + kPackSlackBytes);
}

size_t pointer_bytes(const ConvQ8Plan& plan) { return align_up(static_cast<size_t>(plan.block_rows) * sizeof(void*)); }

size_t column_bytes(const ConvQ8Plan& plan) { return align_up(static_cast<size_t>(plan.nr) * sizeof(int32_t)); }

BlockScratch block_scratch(const ConvQ8Task& task) {
  std::byte* at = task.scratch;
  const auto take = [&at](size_t bytes) {
    std::byte* taken = at;
    at += bytes;
    return taken;
  };
  BlockScratch s{};
  s.packed = take(packed_bytes(task.plan));
  s.a = reinterpret_cast<const void**>(take(pointer_bytes(task.plan)));
  s.y = reinterpret_cast<uint8_t**>(take(pointer_bytes(task.plan)));
  s.residual = reinterpret_cast<const uint8_t**>(take(pointer_bytes(task.plan)));
  s.bias = reinterpret_cast<int32_t*>(take(column_bytes(task.plan)));
  s.scale = reinterpret_cast<float*>(take(column_bytes(task.plan)));
  return s;
}

const uint8_t* pixel(const TensorView& view, const OutputCursor& at) {
  return view.as<const uint8_t>() + at.n * view.strides[0] + at.oy * view.strides[1] + at.ox * view.strides[2];
}

// Points y and residual at the block's rows, at channel 0.
void point_rows(const ConvQ8Task& task, Span rows, const BlockScratch& scratch) {
  const TensorView& y = task.args.out(0);
  OutputCursor at(task.plan.source, rows.begin);
  for (int64_t row = 0; row < rows.end - rows.begin; ++row, at.next(task.plan.source)) {
    scratch.y[row] = const_cast<uint8_t*>(pixel(y, at));
    if (task.requantize.add) scratch.residual[row] = pixel(task.args.in(5), at);
  }
}

// Gives A's rows of one group: in place where that reads nothing behind x, else packed.
void provide_a(const ConvQ8Task& task, Span rows, int64_t group, const BlockScratch& scratch) {
  const ConvQ8Source& s = task.plan.source;
  const int64_t count = rows.end - rows.begin;
  if (task.plan.in_place) {
    bool inside = true;
    OutputCursor at(s, rows.begin);
    for (int64_t row = 0; row < count; ++row, at.next(s)) {
      const uint8_t* a = s.x + at.n * s.stride_n + s.window.first_row(at.oy) * s.stride_h +
                         s.window.first_column(at.ox) * s.stride_w + group * s.channels;
      inside = inside && s.end - a >= s.padded_depth;
      scratch.a[row] = a;
    }
    if (inside) return;
  }
  task.plan.kernel->pack_rows(s, group, rows.begin, count, scratch.packed);
  const int64_t row_bytes = s.padded_depth * task.plan.kernel->element_bytes;
  for (int64_t row = 0; row < count; ++row) scratch.a[row] = scratch.packed + row * row_bytes;
}

// Kernels read nr values of bias and scale: a panel that is not full gets a padded copy.
void provide_columns(const ConvQ8Task& task, int64_t channel, const BlockScratch& scratch, GemmQ8Tile& tile) {
  tile.bias = task.args.in(2).as<const int32_t>() + channel;
  tile.scale = task.args.in(3).as<const float>() + channel;
  if (tile.columns == tile.nr) return;
  std::fill_n(std::copy_n(tile.bias, tile.columns, scratch.bias), tile.nr - tile.columns, 0);
  std::fill_n(std::copy_n(tile.scale, tile.columns, scratch.scale), tile.nr - tile.columns, 0.0f);
  tile.bias = scratch.bias;
  tile.scale = scratch.scale;
}

// Sweeps one panel over the block, in tiles of nearly equal height.
void sweep_panel(const GemmQ8Kernel& kernel, int64_t count, const BlockScratch& scratch, GemmQ8Tile& tile) {
  const int64_t tiles = (count + kernel.mr - 1) / kernel.mr;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = count * i / tiles;
    tile.rows = static_cast<int>(count * (i + 1) / tiles - first);
    tile.a = scratch.a + first;
    tile.y = scratch.y + first;
    tile.residual = scratch.residual + first;
    kernel.tile(tile);
  }
}

}  // namespace

ConvQ8Plan plan_conv_q8(const OpArgs& args, Isa isa) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  const TensorView& y = args.out(0);
  ConvQ8Plan plan{};
  plan.kernel = &select_gemm_q8(isa, args.in(0).dtype, a.nr, a.kg);
  plan.source = conv_source(args, a.kg);
  plan.nr = a.nr;
  plan.kg = a.kg;
  plan.rows = int64_t{y.dims[0]} * y.dims[1] * y.dims[2];
  plan.groups = a.groups;
  plan.group_columns = y.dims[3] / a.groups;
  plan.panels = (plan.group_columns + a.nr - 1) / a.nr;
  plan.panel_bytes = plan.source.padded_depth * a.nr;
  plan.block_rows = rows_of_block(plan);
  plan.in_place = plan.kernel->element_bytes == 1 && rows_in_place(plan.source);
  plan.scratch_bytes = packed_bytes(plan) + 3 * pointer_bytes(plan) + 2 * column_bytes(plan);
  return plan;
}

void run_conv_q8_task(const ConvQ8Task& task, Span rows, Span panels) {
  const ConvQ8Plan& plan = task.plan;
  const BlockScratch scratch = block_scratch(task);
  GemmQ8Tile tile{};
  tile.depth_groups = plan.source.padded_depth / plan.kg;
  tile.requantize = &task.requantize;
  tile.nr = plan.nr;
  tile.kg = plan.kg;
  tile.is_signed = task.args.in(0).dtype == Dtype::kS8;
  for (int64_t begin = rows.begin; begin < rows.end; begin += plan.block_rows) {
    const Span block{begin, std::min(begin + plan.block_rows, rows.end)};
    point_rows(task, block, scratch);
    int64_t packed_group = -1;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t group = panel / plan.panels;
      if (group != packed_group) provide_a(task, block, group, scratch);
      packed_group = group;
      const int64_t column = panel % plan.panels * plan.nr;
      const int64_t channel = group * plan.group_columns + column;
      tile.columns = static_cast<int>(std::min<int64_t>(plan.nr, plan.group_columns - column));
      tile.b = task.args.in(1).as<const int8_t>() + panel * plan.panel_bytes;
      provide_columns(task, channel, scratch, tile);
      tile.channel = channel;
      sweep_panel(*plan.kernel, block.end - block.begin, scratch, tile);
    }
  }
}

}  // namespace edgekit
