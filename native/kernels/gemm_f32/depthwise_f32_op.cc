#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"
#include "kernels/window.h"

namespace edgekit {
namespace {

enum Input { kX, kW, kBias, kResidual };

bool has_residual(const OpArgs& args) { return args.input_count > kResidual && args.inputs[kResidual] != nullptr; }

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<DepthwiseF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_dtype("x", x, Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_dtype("y", y, Dtype::kF32));
  if (x.dims[3] != y.dims[3]) return invalid("depthwise_f32: x has %d channels, y %d", x.dims[3], y.dims[3]);
  EK_RETURN_IF_ERROR(check_conv_window(conv_window(attrs), x, y));
  const int64_t dims[2] = {int64_t{attrs.kernel_h} * attrs.kernel_w, x.dims[3]};
  EK_RETURN_IF_ERROR(expect_dense("w", args.in(kW), Dtype::kF32, dims, 2));
  EK_RETURN_IF_ERROR(expect_vector("bias", args.in(kBias), Dtype::kF32, x.dims[3]));
  EK_RETURN_IF_ERROR(expect_fused_activation("act", attrs.act));
  EK_RETURN_IF_ERROR(expect_in_range("add_before_act", attrs.add_before_act, 0, 1));
  if (has_residual(args)) {
    EK_RETURN_IF_ERROR(expect_dtype("residual", args.in(kResidual), Dtype::kF32));
    EK_RETURN_IF_ERROR(expect_image("residual", args.in(kResidual)));
    EK_RETURN_IF_ERROR(expect_same_dims("residual", args.in(kResidual), "y", y));
  }
  return expect_writable("y", y);
}

// Output pixels [first, first + count) of row (n, oy), whose windows all have the taps `rows` x `columns` inside.
void run_pixels(const GemmF32Kernels& kernels, const OpArgs& args, int64_t n, int64_t oy, TapRange pixels,
                TapRange rows, TapRange columns) {
  const auto& attrs = args.attrs<DepthwiseF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  const WindowAxis vertical = vertical_axis(conv_window(attrs));
  const WindowAxis horizontal = horizontal_axis(conv_window(attrs));
  const int64_t channels = x.dims[3];
  DepthwiseRun run = {};
  run.tap_rows = rows.count();
  run.tap_columns = columns.count();
  if (run.tap_rows == 0 || run.tap_columns == 0) {
    run.tap_rows = 0;  // nothing but padding: y is act(bias)
    run.x = x.as<const float>();
  } else {
    run.x = x.as<const float>() + n * x.strides[0] + vertical.position(oy, rows.begin) * x.strides[1] +
            horizontal.position(pixels.begin, columns.begin) * x.strides[2];
  }
  run.w = args.in(kW).as<const float>();
  if (run.tap_rows != 0) run.w += (rows.begin * attrs.kernel_w + columns.begin) * channels;
  run.bias = args.in(kBias).as<const float>();
  if (has_residual(args)) {
    const TensorView& r = args.in(kResidual);
    run.residual = r.as<const float>() + n * r.strides[0] + oy * r.strides[1] + pixels.begin * r.strides[2];
    run.residual_step = r.strides[2];
  }
  run.y = y.as<float>() + n * y.strides[0] + oy * y.strides[1] + pixels.begin * y.strides[2];
  run.tap_row_step = attrs.dilation_h * x.strides[1];
  run.tap_step = attrs.dilation_w * x.strides[2];
  run.weight_row_step = attrs.kernel_w * channels;
  run.x_step = attrs.stride_w * x.strides[2];
  run.y_step = y.strides[2];
  run.pixels = pixels.count();
  run.channels = channels;
  kernels.depthwise({{static_cast<Activation>(attrs.act), attrs.act_alpha, attrs.act_beta}, attrs.add_before_act != 0},
                    run);
}

Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<DepthwiseF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  const GemmF32Kernels& kernels = gemm_f32_kernels(context.isa);
  const WindowAxis vertical = vertical_axis(conv_window(attrs));
  const WindowAxis horizontal = horizontal_axis(conv_window(attrs));
  const TapRange whole = whole_windows(horizontal, y.dims[2], x.dims[2]);
  const double row_ns = static_cast<double>(y.dims[2]) * y.dims[3] * attrs.kernel_h * attrs.kernel_w * 0.05;
  parallel_for(context, int64_t{y.dims[0]} * y.dims[1], row_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / y.dims[1], oy = row % y.dims[1];
      const TapRange rows = taps_inside(vertical, oy, x.dims[1]);
      const auto border = [&](int64_t from, int64_t to) {
        for (int64_t ox = from; ox < to; ++ox) {
          run_pixels(kernels, args, n, oy, {ox, ox + 1}, rows, taps_inside(horizontal, ox, x.dims[2]));
        }
      };
      border(0, whole.begin);
      if (whole.count() > 0) run_pixels(kernels, args, n, oy, whole, rows, {0, attrs.kernel_w});
      border(whole.end, y.dims[2]);
    }
  });
  return Status::ok();
}

}  // namespace

const OpDef kDepthwiseF32Op = {Opcode::kDepthwiseF32, "depthwise_f32", check, nullptr, run};

}  // namespace edgekit
