#include "tests/q8_conv_case.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/conv_q8_bands.h"
#include "kernels/op.h"
#include "tests/check.h"
#include "tests/q8_pack.h"
#include "tests/run_op.h"
#include "tests/winograd_pack.h"

namespace edgekit::test {
namespace {

constexpr uint8_t kCanary = 0xA5;

size_t size_of(int a, int b = 1, int c = 1, int d = 1) { return static_cast<size_t>(a) * b * c * d; }

// An image [n, h, w, c] whose pixels are `gap` bytes further apart than their channels need, and its lines `line_gap`
// bytes further than their pixels.
struct Image {
  int n, h, w, c, gap, line_gap;
  std::unique_ptr<GuardedBuffer> memory;

  Image(int n_, int h_, int w_, int c_, int gap_, int line_gap_, GuardedBuffer::Flush flush)
      : n(n_),
        h(h_),
        w(w_),
        c(c_),
        gap(gap_),
        line_gap(line_gap_),
        memory(std::make_unique<GuardedBuffer>(bytes(), flush)) {}

  size_t line_bytes() const { return size_of(w, c + gap) + size_of(line_gap); }
  size_t bytes() const { return size_of(n, h) * line_bytes() - size_of(line_gap + gap); }
  size_t at(int in, int iy, int ix, int ic) const {
    return size_of(in * h + iy) * line_bytes() + size_of(ix, c + gap) + size_of(ic);
  }
  uint8_t* data() const { return memory->as<uint8_t>(); }
  TensorView view(Dtype dtype) const {
    TensorView v;
    v.data = data();
    v.dtype = dtype;
    v.rank = 4;
    const int64_t pixel = c + gap;
    const int32_t dims[4] = {n, h, w, c};
    const int64_t line = static_cast<int64_t>(line_bytes());
    const int64_t strides[4] = {h * line, line, pixel, 1};
    std::copy(dims, dims + 4, v.dims);
    std::copy(strides, strides + 4, v.strides);
    return v;
  }
};

TensorView dense(void* data, Dtype dtype, const std::vector<int32_t>& dims) {
  TensorView v;
  v.data = data;
  v.dtype = dtype;
  v.rank = static_cast<int>(dims.size());
  int64_t stride = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    v.dims[i] = dims[static_cast<size_t>(i)];
    v.strides[i] = stride;
    stride *= v.dims[i];
  }
  return v;
}

int depth_of(const ConvCase& c) { return c.kernel_h * c.kernel_w * (c.channels / c.groups); }

PackShape pack_shape(const ConvCase& c) {
  PackShape shape{c.groups, c.out_channels / c.groups, c.kernel_h, c.kernel_w, c.channels / c.groups, c.nr,
                  c.kg,     c.saturating_pairs};
  shape.is_signed = c.is_signed;
  shape.part = 1 + static_cast<int>(c.seed % 9);
  shape.taps = c.seed % 2 == 0;
  return shape;
}

// One sign in three columns of four among the extremes: sums as far from zero as they can get.
int8_t random_weight(const ConvCase& c, int oc, Random& random) {
  // Mostly small: panels then have depth groups in every form, and some that need a second row.
  const int most = random.next() % 4 == 0 ? 127 : 40;
  if (c.values == Values::kRandom) return static_cast<int8_t>(random.range(-most, most));
  if (c.values == Values::kFar) return c.is_signed || oc % 2 ? -128 : 127;
  const bool positive = oc % 4 == 3 ? random.next() & 1 : oc % 2;
  return positive ? 127 : -128;
}

// Memory that ends at an unreadable page, with what the vector holds.
template <typename T>
std::unique_ptr<GuardedBuffer> guarded(const std::vector<T>& values, GuardedBuffer::Flush flush) {
  auto memory = std::make_unique<GuardedBuffer>(values.size() * sizeof(T), flush);
  std::copy(values.begin(), values.end(), memory->template as<T>());
  return memory;
}

struct Operands {
  Image x, residual, y;
  GuardedBuffer bias, scale, lut;
  std::vector<int8_t> weights;  // [output channels, depth]
  std::vector<int32_t> plain_bias;
  PackedWeights packed;
  std::vector<int8_t> winograd;
  std::unique_ptr<GuardedBuffer> w, row_start, row_group, row_order;
  ConvQ8Attrs attrs{};

  explicit Operands(const ConvCase& c)
      : x(c.n, c.h, c.w, c.channels, c.x_gap, c.line_gap, c.flush),
        residual(c.n, c.out_h, c.out_w, c.out_channels, c.y_gap + 1, c.line_gap, c.flush),
        y(c.n, c.out_h, c.out_w, c.out_channels, c.y_gap, c.line_gap, c.flush),
        bias(size_of(c.out_channels, 4), c.flush),
        scale(size_of(c.out_channels, 4), c.flush),
        lut(256, c.flush) {}
};

void fill_weights(const ConvCase& c, Operands& o, Random& random) {
  const int depth = depth_of(c);
  for (int oc = 0; oc < c.out_channels; ++oc) {
    for (int k = 0; k < depth; ++k) o.weights.push_back(random_weight(c, oc, random));
  }
  const auto weight = [&](int oc, int k) { return o.weights[size_of(oc, depth) + size_of(k)]; };
  const PackShape shape = pack_shape(c);
  if (c.winograd) {
    o.packed.complement.assign(size_of(c.out_channels), 0);
    o.winograd = pack_winograd(c.channels, c.out_channels, [&](int oc, int ic, int ky, int kx) {
      return weight(oc, (ky * 3 + kx) * c.channels + ic);
    });
    o.w = guarded(o.winograd, c.flush);
  } else if (c.depthwise) {
    for (int k = 0; k < depth; ++k) {
      for (int oc = 0; oc < c.channels; ++oc) o.packed.w.push_back(weight(oc, k));
    }
  } else {
    o.packed = pack_conv_q8(shape, [&](int oc, int ky, int byte) { return weight(oc, ky * shape.run_bytes() + byte); });
  }
  if (!c.winograd) o.w = guarded(o.packed.w, c.flush);
  o.row_start = guarded(o.packed.row_start, c.flush);
  o.row_group = guarded(o.packed.row_group, c.flush);
  o.row_order = guarded(o.packed.row_order, c.flush);
}

void fill_memory(const ConvCase& c, Operands& o, Random& random) {
  const auto byte = [&]() -> uint8_t {
    if (c.values == Values::kRandom) return static_cast<uint8_t>(random.next());
    if (c.values == Values::kFar) return c.is_signed ? 0x80 : 0xff;
    return static_cast<uint8_t>((random.next() & 1 ? 255 : 0) + (c.is_signed ? 128 : 0));
  };
  for (size_t i = 0; i < o.x.bytes(); ++i) o.x.data()[i] = byte();
  for (size_t i = 0; i < o.residual.bytes(); ++i) o.residual.data()[i] = byte();
  for (int i = 0; i < 256; ++i) o.lut.as<uint8_t>()[i] = static_cast<uint8_t>(random.next());
  fill_weights(c, o, random);
  const int depth = depth_of(c);
  const float spread = 3.0f / std::sqrt(static_cast<float>(depth)) / 127.0f;
  for (int oc = 0; oc < c.out_channels; ++oc) {
    o.plain_bias.push_back(random.range(-20000, 20000));
    o.bias.as<int32_t>()[oc] = o.plain_bias.back() - (c.depthwise ? 0 : o.packed.complement[static_cast<size_t>(oc)]);
    float scale = (0.2f + random.unit()) * spread;
    if (c.scales == Scales::kTies) scale = 0.5f;
    if (c.scales == Scales::kAboveOne) scale = oc % 3 == 0 ? 1e9f : 1.0f + random.unit() * 1e5f;
    o.scale.as<float>()[oc] = scale;
  }
}

void fill_attributes(const ConvCase& c, ConvQ8Attrs& a, Random& random) {
  const int low = c.is_signed ? -128 : 0;
  const auto zero = [&] {
    return low + (c.values == Values::kRandom ? random.range(0, 255) : random.range(0, 1) * 255);
  };
  a.groups = c.groups;
  a.kernel_h = c.kernel_h;
  a.kernel_w = c.kernel_w;
  a.stride_h = c.stride_h;
  a.stride_w = c.stride_w;
  a.dilation_h = c.dilation_h;
  a.dilation_w = c.dilation_w;
  a.pad_top = c.pad_top;
  a.pad_left = c.pad_left;
  a.nr = c.nr;
  a.kg = c.kg;
  a.x_zero = c.zero_padding ? 0 : zero();
  a.y_zero = zero();
  a.y_min = c.clamp ? std::max(low, a.y_zero) : low;
  a.y_max = c.clamp ? std::min(low + 255, a.y_zero + 90) : low + 255;
  a.fuse_lut = c.lut;
  a.fuse_add = c.add;
  a.add_lhs_zero = zero();
  a.add_lhs_scale = 0.3f + random.unit();
  a.add_rhs_zero = zero();
  a.add_rhs_scale = 0.3f + random.unit();
  a.add_zero = zero();
  a.add_min = c.clamp ? a.add_zero : low;
  a.add_max = low + 255;
}

// The sum of one output by the definition, in 64 bits.
int64_t plain_sum(const ConvCase& c, const Operands& o, int n, int oy, int ox, int oc) {
  const int per_group = c.channels / c.groups;
  const int first = oc / (c.out_channels / c.groups) * per_group;
  int64_t sum = o.plain_bias[static_cast<size_t>(oc)];
  int k = 0;
  for (int ky = 0; ky < c.kernel_h; ++ky) {
    for (int kx = 0; kx < c.kernel_w; ++kx) {
      const int iy = oy * c.stride_h - c.pad_top + ky * c.dilation_h;
      const int ix = ox * c.stride_w - c.pad_left + kx * c.dilation_w;
      const bool inside = iy >= 0 && iy < c.h && ix >= 0 && ix < c.w;
      for (int ic = 0; ic < per_group; ++ic, ++k) {
        int64_t x = o.attrs.x_zero;
        if (inside) {
          const uint8_t byte = o.x.data()[o.x.at(n, iy, ix, first + ic)];
          x = c.is_signed ? static_cast<int8_t>(byte) : byte;
        }
        sum += x * o.weights[size_of(oc, depth_of(c)) + size_of(k)];
      }
    }
  }
  return sum;
}

// The schema's formulas, word for word.
uint8_t plain_output(const ConvCase& c, Operands& o, int64_t sum, int oc, uint8_t residual_byte) {
  const ConvQ8Attrs& a = o.attrs;
  const int low = c.is_signed ? -128 : 0;
  float v = static_cast<float>(static_cast<int32_t>(sum)) * o.scale.as<float>()[oc];
  v = std::min(std::max(v, static_cast<float>(a.y_min - a.y_zero)), static_cast<float>(a.y_max - a.y_zero));
  int t = static_cast<int>(std::nearbyint(static_cast<double>(v))) + a.y_zero;
  if (c.lut) {
    const uint8_t byte = o.lut.as<uint8_t>()[t - low];
    t = c.is_signed ? static_cast<int8_t>(byte) : byte;
  }
  if (c.add) {
    const int r = c.is_signed ? static_cast<int8_t>(residual_byte) : residual_byte;
    float lhs = static_cast<float>(t - a.add_lhs_zero) * a.add_lhs_scale;
    float rhs = static_cast<float>(r - a.add_rhs_zero) * a.add_rhs_scale;
    v = lhs + rhs;
    v = std::min(std::max(v, static_cast<float>(a.add_min - a.add_zero)), static_cast<float>(a.add_max - a.add_zero));
    t = static_cast<int>(std::nearbyint(static_cast<double>(v))) + a.add_zero;
  }
  return static_cast<uint8_t>(t);
}

std::vector<uint8_t> plain_image(const ConvCase& c, Operands& o) {
  std::vector<uint8_t> y(o.y.bytes(), kCanary);
  for (int n = 0; n < c.n; ++n) {
    for (int oy = 0; oy < c.out_h; ++oy) {
      for (int ox = 0; ox < c.out_w; ++ox) {
        for (int oc = 0; oc < c.out_channels; ++oc) {
          const uint8_t residual = o.residual.data()[o.residual.at(n, oy, ox, oc)];
          y[o.y.at(n, oy, ox, oc)] = plain_output(c, o, plain_sum(c, o, n, oy, ox, oc), oc, residual);
        }
      }
    }
  }
  return y;
}

DepthwiseQ8Attrs depthwise_attributes(const ConvQ8Attrs& a) {
  return {a.kernel_h,     a.kernel_w,      a.stride_h,     a.stride_w,      a.dilation_h, a.dilation_w, a.pad_top,
          a.pad_left,     a.x_zero,        a.y_zero,       a.y_min,         a.y_max,      a.fuse_lut,   a.fuse_add,
          a.add_lhs_zero, a.add_lhs_scale, a.add_rhs_zero, a.add_rhs_scale, a.add_zero,   a.add_min,    a.add_max};
}

ConvQ8WinogradAttrs winograd_attributes(const ConvQ8Attrs& a) {
  return {a.pad_top,      a.pad_left,      a.x_zero,   a.y_zero,       a.y_min,
          a.y_max,        a.fuse_lut,      a.fuse_add, a.add_lhs_zero, a.add_lhs_scale,
          a.add_rhs_zero, a.add_rhs_scale, a.add_zero, a.add_min,      a.add_max};
}

TensorView weights_view(const ConvCase& c, Operands& o) {
  const PackShape shape = pack_shape(c);
  const int lanes = c.nr * c.kg;
  auto* w = o.w->as<int8_t>();
  if (c.winograd) return dense(w, Dtype::kS8, {(c.out_channels + 15) / 16, (c.channels + 1) / 2, 9, 32});
  if (c.depthwise) return dense(w, Dtype::kS8, {depth_of(c), c.channels});
  if (o.packed.row_group.empty()) {
    return dense(w, Dtype::kS8, {c.groups, shape.panels(), shape.depth_groups(), lanes});
  }
  return dense(w, Dtype::kS8, {static_cast<int32_t>(o.packed.w.size()) / lanes, lanes});
}

// body(op, args), as the engine calls it.
template <typename Body>
auto with_args(const ConvCase& c, Operands& o, Body&& body) {
  const Dtype dtype = c.is_signed ? Dtype::kS8 : Dtype::kU8;
  const TensorView x = o.x.view(dtype), y = o.y.view(dtype), residual = o.residual.view(dtype);
  const TensorView w = weights_view(c, o);
  const TensorView bias = dense(o.bias.as<int32_t>(), Dtype::kI32, {c.out_channels});
  const TensorView scale = dense(o.scale.as<float>(), Dtype::kF32, {c.out_channels});
  const TensorView lut = dense(o.lut.as<uint8_t>(), dtype, {256});
  const auto indices = [](GuardedBuffer& memory, const std::vector<int32_t>& values) {
    return dense(memory.as<int32_t>(), Dtype::kI32, {static_cast<int32_t>(values.size())});
  };
  const TensorView row_start = indices(*o.row_start, o.packed.row_start);
  const TensorView row_group = indices(*o.row_group, o.packed.row_group);
  const TensorView row_order = indices(*o.row_order, o.packed.row_order);
  const bool is_list = !o.packed.row_group.empty();
  const TensorView* inputs[] = {&x,
                                &w,
                                &bias,
                                &scale,
                                c.lut ? &lut : nullptr,
                                c.add ? &residual : nullptr,
                                is_list ? &row_start : nullptr,
                                is_list ? &row_group : nullptr,
                                o.packed.row_order.empty() ? nullptr : &row_order};
  const TensorView* outputs[] = {&y};
  const DepthwiseQ8Attrs depthwise = depthwise_attributes(o.attrs);
  const ConvQ8WinogradAttrs winograd = winograd_attributes(o.attrs);
  const void* attributes = c.depthwise  ? static_cast<const void*>(&depthwise)
                           : c.winograd ? static_cast<const void*>(&winograd)
                                        : &o.attrs;
  OpArgs args{inputs, c.depthwise || c.winograd ? 6 : 9, outputs, 1, attributes};
  const OpDef& op = c.depthwise ? kDepthwiseQ8Op : c.winograd ? kConvQ8WinogradOp : kConvQ8Op;
  return body(op, args);
}

// Checks and runs the op: in its default way, or in another one that the seed names, if there is one.
Status check_and_run(const ConvCase& c, Operands& o, Isa isa, bool is_default) {
  return with_args(c, o, [&](const OpDef& op, OpArgs& args) -> Status {
    EK_RETURN_IF_ERROR(op.check(args));
    const int ways = op.ways(args, c.threads, isa);
    if (!is_default && ways > 1) args.way = 1 + static_cast<int>(c.seed % static_cast<uint64_t>(ways - 1));
    return run_op(op, args, isa, c.threads);
  });
}

// With what follows from other fields.
ConvCase completed(ConvCase c) {
  if (c.depthwise) c.groups = c.out_channels = c.channels;
  const auto fit = [](int size, int kernel, int stride, int dilation, int pad) {
    return std::max(1, (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1);
  };
  if (c.out_h == 0) c.out_h = fit(c.h, c.kernel_h, c.stride_h, c.dilation_h, c.pad_top);
  if (c.out_w == 0) c.out_w = fit(c.w, c.kernel_w, c.stride_w, c.dilation_w, c.pad_left);
  return c;
}

void fill(const ConvCase& c, Operands& o) {
  Random random(c.seed);
  fill_memory(c, o, random);
  fill_attributes(c, o.attrs, random);
}

}  // namespace

std::string ConvCase::text() const {
  std::string s = depthwise ? "depthwise" : winograd ? "winograd" : "conv";
  const auto put = [&s](const char* name, int value) { s += std::string(" ") + name + "=" + std::to_string(value); };
  put("n", n), put("h", h), put("w", w), put("c", channels), put("oc", out_channels), put("groups", groups);
  put("kh", kernel_h), put("kw", kernel_w), put("sh", stride_h), put("sw", stride_w), put("dh", dilation_h);
  put("dw", dilation_w), put("pt", pad_top), put("pl", pad_left), put("oh", out_h), put("ow", out_w);
  put("x_gap", x_gap), put("y_gap", y_gap), put("line_gap", line_gap), put("nr", nr), put("kg", kg),
      put("signed", is_signed), put("lut", lut);
  put("add", add), put("clamp", clamp), put("values", static_cast<int>(values)),
      put("scales", static_cast<int>(scales));
  put("threads", threads), put("begin", flush == GuardedBuffer::Flush::kBegin), put("seed", static_cast<int>(seed));
  return s;
}

void vary(const GridCase& grid, ConvCase& c) {
  c.flush = grid.any(2, 1) ? GuardedBuffer::Flush::kEnd : GuardedBuffer::Flush::kBegin;
  c.x_gap = grid.any(3, 2) == 0 ? 1 + grid.any(9, 3) : 0;
  c.y_gap = grid.any(3, 4) == 0 ? 1 + grid.any(9, 5) : 0;
  c.line_gap = grid.any(3, 6) == 0 ? 1 + grid.any(9, 7) : 0;
  c.values = grid.any(4, 8) == 0 ? Values::kExtremes : grid.any(16, 9) == 0 ? Values::kFar : Values::kRandom;
  c.scales = grid.any(4, 10) == 0 ? Scales::kTies : Scales::kUsual;
  c.zero_padding = grid.any(4, 11) == 0;
  c.clamp = grid.any(4, 12) == 0;
  c.lut = grid.any(8, 13) == 0;
  c.add = grid.any(8, 14) == 0;
  c.seed = grid.seed();
}

std::vector<int> rows_by_form(const ConvCase& asked) {
  const ConvCase c = completed(asked);
  Operands o(c);
  fill(c, o);
  std::vector<int> rows(o.packed.row_order.empty() ? kForms : kForms + 1);
  for (size_t i = 0; i + 1 < o.packed.row_start.size(); ++i) {
    rows[i % rows.size()] += o.packed.row_start[i + 1] - o.packed.row_start[i];
  }
  return rows;
}

bool skips_taps(const ConvCase& asked, Isa isa) {
  const ConvCase c = completed(asked);
  Operands o(c);
  fill(c, o);
  return with_args(c, o, [&](const OpDef&, const OpArgs& args) { return conv_q8_band_bytes(args, isa) > 0; });
}

void check_conv_case(const ConvCase& asked, Isa isa) {
  const ConvCase c = completed(asked);
  Operands o(c);
  fill(c, o);
  const std::vector<uint8_t> expected = plain_image(c, o);
  for (const bool is_default : {true, false}) {
    std::memset(o.y.data(), kCanary, o.y.bytes());
    const std::string what = std::string(name_of(isa)) + (is_default ? "" : ", another way");
    const Status status = check_and_run(c, o, isa, is_default);
    EK_CHECK_MSG(status.is_ok(), what + ": " + status.message() + " for " + c.text());
    if (!status.is_ok()) return;
    const auto* differs = std::mismatch(expected.data(), expected.data() + expected.size(), o.y.data()).first;
    const auto at = static_cast<size_t>(differs - expected.data());
    if (at == expected.size()) continue;
    fail(__FILE__, __LINE__,
         what + ": byte " + std::to_string(at) + " is " + std::to_string(o.y.data()[at]) + ", expected " +
             std::to_string(expected[at]) + " for " + c.text());
    return;
  }
}

}  // namespace edgekit::test
