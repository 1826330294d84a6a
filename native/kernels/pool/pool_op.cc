#include <algorithm>
#include <cmath>

#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"
#include "kernels/pool/pool.h"
#include "kernels/window.h"

namespace edgekit {
namespace {

#define EK_KERNELS(isa, space) {Isa::isa, #space, space::pool_kernels},
constexpr Variant<PoolKernels> kVariants[] = {
#include "kernels/pool/kernels.inc"
};
#undef EK_KERNELS

// 255 times this many taps still fit in an int32_t.
constexpr int64_t kMostTaps = int64_t{1} << 23;
constexpr int64_t kMostFarPad = int64_t{1} << 30;

Status check_quantization(const TensorView& x, const PoolAttrs& attrs) {
  const int least = x.dtype == Dtype::kS8 ? -128 : 0;
  EK_RETURN_IF_ERROR(expect_in_range("x_zero", attrs.x_zero, least, least + 255));
  EK_RETURN_IF_ERROR(expect_in_range("y_zero", attrs.y_zero, least, least + 255));
  if (!std::isfinite(attrs.ratio)) return invalid("pool: ratio is not finite");
  return Status::ok();
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<PoolAttrs>();
  const TensorView &x = args.in(0), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_in_range("kind", attrs.kind, 0, kPoolKindCount - 1));
  if (x.dtype != Dtype::kF32 && !is_q8(x.dtype)) return invalid("pool on %s", name_of(x.dtype));
  EK_RETURN_IF_ERROR(expect_same_dtype("x", x, "y", y));
  if (x.dims[3] != y.dims[3]) return invalid("pool: x has %d channels, y %d", x.dims[3], y.dims[3]);
  EK_RETURN_IF_ERROR(check_conv_window(conv_window(attrs), x, y));
  EK_RETURN_IF_ERROR(expect_in_range("pad_bottom", attrs.pad_bottom, -kMostFarPad, kMostFarPad));
  EK_RETURN_IF_ERROR(expect_in_range("pad_right", attrs.pad_right, -kMostFarPad, kMostFarPad));
  EK_RETURN_IF_ERROR(expect_in_range("count_include_pad", attrs.count_include_pad, 0, 1));
  if (is_q8(x.dtype)) {
    EK_RETURN_IF_ERROR(check_quantization(x, attrs));
    const int64_t taps = int64_t{std::min(attrs.kernel_h, x.dims[1])} * std::min(attrs.kernel_w, x.dims[2]);
    EK_RETURN_IF_ERROR(expect_in_range("pool: taps of a q8 window", taps, 1, kMostTaps));
  }
  return expect_writable("y", y);
}

// One output pixel. x_offset: of the first tap inside the image.
void pool_pixel(const PoolKernels& kernels, const OpArgs& args, const PoolWindow& window, int64_t x_offset,
                int64_t y_offset, int64_t taps) {
  const auto& attrs = args.attrs<PoolAttrs>();
  const PoolQuantization quantization = {attrs.x_zero, attrs.y_zero, attrs.ratio};
  const TensorView &x = args.in(0), &y = args.out(0);
  const bool is_max = attrs.kind == static_cast<int32_t>(PoolKind::kMax);
  const float count = static_cast<float>(taps);
  if (x.dtype == Dtype::kF32) {
    const float* from = x.as<const float>() + x_offset;
    float* to = y.as<float>() + y_offset;
    is_max ? kernels.max_f32(window, from, to) : kernels.average_f32(window, from, to, count);
  } else if (is_max) {
    const auto pool_max = x.dtype == Dtype::kU8 ? kernels.max_u8 : kernels.max_s8;
    pool_max(window, x.as<const uint8_t>() + x_offset, y.as<uint8_t>() + y_offset);
  } else if (x.dtype == Dtype::kU8) {
    kernels.average_u8(window, x.as<const uint8_t>() + x_offset, y.as<uint8_t>() + y_offset, count, quantization);
  } else {
    kernels.average_s8(window, x.as<const int8_t>() + x_offset, y.as<int8_t>() + y_offset, count, quantization);
  }
}

// A window that holds no tap at all: the value that stands for 0.
void fill_empty(const OpArgs& args, int64_t y_offset) {
  const TensorView& y = args.out(0);
  if (y.dtype == Dtype::kF32) {
    std::fill_n(y.as<float>() + y_offset, y.dims[3], 0.0f);
  } else {
    std::fill_n(y.as<uint8_t>() + y_offset, y.dims[3], static_cast<uint8_t>(args.attrs<PoolAttrs>().y_zero));
  }
}

void pool_row(const PoolKernels& kernels, const OpArgs& args, int64_t batch, int64_t oy) {
  const auto& attrs = args.attrs<PoolAttrs>();
  const TensorView &x = args.in(0), &y = args.out(0);
  const WindowAxis vertical = vertical_axis(conv_window(attrs));
  const WindowAxis horizontal = horizontal_axis(conv_window(attrs));
  const TapRange rows = taps_inside(vertical, oy, x.dims[1]);
  const bool counts_pads = attrs.count_include_pad != 0;
  const int64_t padded_rows = taps_padded(vertical, oy, int64_t{x.dims[1]} + attrs.pad_bottom);
  for (int64_t ox = 0; ox < y.dims[2]; ++ox) {
    const TapRange columns = taps_inside(horizontal, ox, x.dims[2]);
    const int64_t y_offset = batch * y.strides[0] + oy * y.strides[1] + ox * y.strides[2];
    if (rows.count() == 0 || columns.count() == 0) {
      fill_empty(args, y_offset);
      continue;
    }
    const PoolWindow window = {x.strides[1] * attrs.dilation_h, x.strides[2] * attrs.dilation_w, rows.count(),
                               columns.count(), x.dims[3]};
    const int64_t x_offset = batch * x.strides[0] + vertical.position(oy, rows.begin) * x.strides[1] +
                             horizontal.position(ox, columns.begin) * x.strides[2];
    const int64_t taps = counts_pads ? padded_rows * taps_padded(horizontal, ox, int64_t{x.dims[2]} + attrs.pad_right)
                                     : window.rows * window.columns;
    pool_pixel(kernels, args, window, x_offset, y_offset, taps);
  }
}

Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<PoolAttrs>();
  const TensorView &x = args.in(0), &y = args.out(0);
  const PoolKernels& kernels = pool_kernels(context.isa);
  const double taps = static_cast<double>(std::min(attrs.kernel_h, x.dims[1])) * std::min(attrs.kernel_w, x.dims[2]);
  const double row_ns = y.dims[2] * (10.0 + taps * x.dims[3] * 0.03 * dtype_bytes(x.dtype));
  parallel_for(context, int64_t{y.dims[0]} * y.dims[1], row_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) pool_row(kernels, args, row / y.dims[1], row % y.dims[1]);
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return std::string("pool_") + pool_kernel_space(isa); }

}  // namespace

const PoolKernels& pool_kernels(Isa isa) { return select_variant(kVariants, isa); }

const char* pool_kernel_space(Isa isa) { return best_variant(kVariants, isa).name; }

const OpDef kPoolOp = {Opcode::kPool, "pool", check, nullptr, run, nullptr, nullptr, kernel};

}  // namespace edgekit
