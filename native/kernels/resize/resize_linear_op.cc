#include <cmath>

#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"
#include "kernels/resize/resize.h"

namespace edgekit {
namespace {

enum Input { kX, kY0, kY1, kWy, kX0, kX1, kWx };

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<ResizeLinearAttrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  if (x.dtype != Dtype::kF32 && !is_q8(x.dtype)) return invalid("resize_linear on %s", name_of(x.dtype));
  EK_RETURN_IF_ERROR(expect_same_dtype("x", x, "y", y));
  EK_RETURN_IF_ERROR(expect_image("x", x));
  EK_RETURN_IF_ERROR(expect_image("y", y));
  if (x.dims[0] != y.dims[0] || x.dims[3] != y.dims[3]) return invalid("resize: x and y differ in batch or channels");
  EK_RETURN_IF_ERROR(expect_index_table("y0", args.in(kY0), y.dims[1], x.dims[1]));
  EK_RETURN_IF_ERROR(expect_index_table("y1", args.in(kY1), y.dims[1], x.dims[1]));
  EK_RETURN_IF_ERROR(expect_vector("wy", args.in(kWy), Dtype::kF32, y.dims[1]));
  EK_RETURN_IF_ERROR(expect_index_table("x0", args.in(kX0), y.dims[2], x.dims[2]));
  EK_RETURN_IF_ERROR(expect_index_table("x1", args.in(kX1), y.dims[2], x.dims[2]));
  EK_RETURN_IF_ERROR(expect_vector("wx", args.in(kWx), Dtype::kF32, y.dims[2]));
  if (is_q8(x.dtype)) {
    const int least = x.dtype == Dtype::kS8 ? -128 : 0;
    EK_RETURN_IF_ERROR(expect_in_range("x_zero", attrs.x_zero, least, least + 255));
    EK_RETURN_IF_ERROR(expect_in_range("y_zero", attrs.y_zero, least, least + 255));
    if (!std::isfinite(attrs.ratio)) return invalid("resize_linear: ratio is not finite");
  }
  return expect_writable("y", y);
}

void linear_row(const ResizeKernels& kernels, const OpArgs& args, const LinearRow& row, int64_t top, int64_t bottom,
                int64_t to) {
  const auto& attrs = args.attrs<ResizeLinearAttrs>();
  const ResizeQuantization quantization = {attrs.x_zero, attrs.y_zero, attrs.ratio};
  const TensorView &x = args.in(kX), &y = args.out(0);
  switch (x.dtype) {
    case Dtype::kF32:
      kernels.linear_f32(row, x.as<const float>() + top, x.as<const float>() + bottom, y.as<float>() + to);
      break;
    case Dtype::kU8:
      kernels.linear_u8(row, x.as<const uint8_t>() + top, x.as<const uint8_t>() + bottom, y.as<uint8_t>() + to,
                        quantization);
      break;
    default:
      kernels.linear_s8(row, x.as<const int8_t>() + top, x.as<const int8_t>() + bottom, y.as<int8_t>() + to,
                        quantization);
  }
}

Status run(const OpArgs& args, RunContext& context) {
  const TensorView &x = args.in(kX), &y = args.out(0);
  const int64_t height = y.dims[1], width = y.dims[2];
  const auto table = [&](Input input) { return args.in(input).as<const int32_t>(); };
  const int32_t *y0 = table(kY0), *y1 = table(kY1), *x0 = table(kX0), *x1 = table(kX1);
  const float* wy = args.in(kWy).as<const float>();
  const ResizeKernels& kernels = resize_kernels(context.isa);
  const double row_ns = static_cast<double>(width) * (4.0 + 0.4 * y.dims[3]);
  parallel_for(context, y.dims[0] * height, row_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / height, oy = i % height;
      const LinearRow row = {x0,        x1,    args.in(kWx).as<const float>(), width, x.strides[2], y.strides[2],
                             y.dims[3], wy[oy]};
      linear_row(kernels, args, row, n * x.strides[0] + y0[oy] * x.strides[1], n * x.strides[0] + y1[oy] * x.strides[1],
                 n * y.strides[0] + oy * y.strides[1]);
    }
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return std::string("resize_") + resize_kernel_space(isa); }

}  // namespace

const OpDef kResizeLinearOp = {Opcode::kResizeLinear, "resize_linear", check, nullptr, run, nullptr, nullptr, kernel};

}  // namespace edgekit
