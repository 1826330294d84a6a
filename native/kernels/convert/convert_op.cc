// convert: quantize, dequantize, requantize or cast, by the dtypes and scales of x and y; any strides.
#include "kernels/convert/cast.h"
#include "kernels/convert/convert.h"
#include "kernels/elementwise_q8/elementwise_q8.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

enum class Conversion { kQuantize, kDequantize, kRequantize, kCast };

Conversion conversion_of(const TensorView& x, const TensorView& y) {
  if (x.dtype == Dtype::kF32 && is_q8(y.dtype) && y.scale > 0) return Conversion::kQuantize;
  if (is_q8(x.dtype) && y.dtype == Dtype::kF32 && x.scale > 0) return Conversion::kDequantize;
  if (is_q8(x.dtype) && is_q8(y.dtype) && x.scale > 0 && y.scale > 0) return Conversion::kRequantize;
  return Conversion::kCast;
}

Status check_quantization(const char* name, const TensorView& view) {
  EK_RETURN_IF_ERROR(check_scale(name, view.scale));
  return check_clamp_q8(view.dtype, view.zero_point, view.zero_point, view.zero_point);
}

Status check_convert(const OpArgs& args) {
  const TensorView& x = args.in(0);
  const TensorView& y = args.out(0);
  EK_RETURN_IF_ERROR(expect_same_dims("x", x, "y", y));
  EK_RETURN_IF_ERROR(expect_writable("y", y));
  const Conversion conversion = conversion_of(x, y);
  if (conversion == Conversion::kCast) return Status::ok();
  if (conversion != Conversion::kQuantize) EK_RETURN_IF_ERROR(check_quantization("scale of x", x));
  if (conversion != Conversion::kDequantize) EK_RETURN_IF_ERROR(check_quantization("scale of y", y));
  if (conversion == Conversion::kRequantize) return check_scale("ratio of scales", x.scale / y.scale);
  return Status::ok();
}

// Requantizing has 256 cases: a table by the bits of x.
void fill_requantize_lut(const TensorView& x, const TensorView& y, uint8_t (&lut)[256]) {
  const float ratio = x.scale / y.scale;
  const int32_t low = y.dtype == Dtype::kS8 ? -128 : 0;
  const float v_min = static_cast<float>(low - y.zero_point);
  const float v_max = static_cast<float>(low + 255 - y.zero_point);
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t value = q8_value(static_cast<uint8_t>(byte), x.dtype == Dtype::kS8) - x.zero_point;
    lut[byte] = static_cast<uint8_t>(round_half_even(clamp_float(static_cast<float>(value) * ratio, v_min, v_max)) +
                                     y.zero_point);
  }
}

struct RowRunner {
  Conversion conversion;
  const TensorView& x;
  const TensorView& y;
  const LoopNest<2>& nest;
  const ConvertKernels& kernels;
  const ElementwiseQ8Kernels& bytes;
  uint8_t lut[256];

  void operator()(const int64_t (&at)[2], int64_t n) const {
    const int64_t x_stride = nest.run_stride(0);
    const int64_t y_stride = nest.run_stride(1);
    switch (conversion) {
      case Conversion::kQuantize:
        return kernels.quantize_row({x.as<float>() + at[0], x_stride, y.as<uint8_t>() + at[1], y_stride, n, y.scale,
                                     y.zero_point, y.dtype == Dtype::kS8});
      case Conversion::kDequantize:
        return kernels.dequantize_row({x.as<uint8_t>() + at[0], x_stride, y.as<float>() + at[1], y_stride, n, x.scale,
                                       x.zero_point, x.dtype == Dtype::kS8});
      case Conversion::kRequantize:
        return bytes.lut_row({x.as<uint8_t>() + at[0], x_stride, y.as<uint8_t>() + at[1], y_stride, n, lut, false});
      case Conversion::kCast:
        return select_cast(x.dtype, y.dtype)({x.as<std::byte>() + at[0] * dtype_bytes(x.dtype), x_stride,
                                              y.as<std::byte>() + at[1] * dtype_bytes(y.dtype), y_stride, n});
    }
  }
};

// Rows run along the memory of the wider side: where x or y is a transposed image (NCHW against NHWC), that makes the
// cheaper rows.
Status run_convert(const OpArgs& args, RunContext& context) {
  const TensorView &x = args.in(0), &y = args.out(0);
  const TensorView* const views[] = {&x, &y};
  const LoopNest<2> nest = collapse_by(views, dtype_bytes(x.dtype) > dtype_bytes(y.dtype) ? 0 : 1);
  const ConvertKernels& kernels = select_convert(context.isa);
  RowRunner runner{conversion_of(x, y), x, y, nest, kernels, select_elementwise_q8(context.isa), {}};
  if (runner.conversion == Conversion::kRequantize) fill_requantize_lut(x, y, runner.lut);
  parallel_runs(context, nest, kernels.element_ns, runner);
  return Status::ok();
}

}  // namespace

const OpDef kConvertOp = {Opcode::kConvert, "convert", check_convert, nullptr, run_convert};

}  // namespace edgekit
