#include <algorithm>
#include <cstdlib>

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

// The taps inside the image, by output row and then by output column: kept from one run to the next.
size_t state_bytes(const OpArgs& args, Isa) {
  return (static_cast<size_t>(args.out(0).dims[1]) + static_cast<size_t>(args.out(0).dims[2])) * sizeof(InsideTaps);
}

void fill_taps(const WindowAxis& axis, int64_t outputs, int64_t extent, InsideTaps* taps) {
  for (int64_t o = 0; o < outputs; ++o) {
    const TapRange inside = taps_inside(axis, o, extent);
    const bool any = inside.count() > 0;
    taps[o] = {any ? static_cast<int32_t>(inside.begin) : 0, any ? static_cast<int32_t>(inside.count()) : 0};
  }
}

void prepare(const OpArgs& args, Isa, std::byte* state) {
  const ConvWindow window = conv_window(args.attrs<DepthwiseF32Attrs>());
  const TensorView &x = args.in(kX), &y = args.out(0);
  auto* taps = reinterpret_cast<InsideTaps*>(state);
  fill_taps(vertical_axis(window), y.dims[1], x.dims[1], taps);
  fill_taps(horizontal_axis(window), y.dims[2], x.dims[2], taps + y.dims[1]);
}

// All rows of image 0.
DepthwiseBand band_of(const OpArgs& args, const std::byte* state) {
  const auto& attrs = args.attrs<DepthwiseF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  const ConvWindow window = conv_window(attrs);
  const TapRange whole = whole_windows(horizontal_axis(window), y.dims[2], x.dims[2]);
  DepthwiseBand band = {};
  band.w = args.in(kW).as<const float>();
  band.bias = args.in(kBias).as<const float>();
  band.row_taps = reinterpret_cast<const InsideTaps*>(state);
  band.column_taps = band.row_taps + y.dims[1];
  band.x_origin = window.first_row(0) * x.strides[1] + window.first_column(0) * x.strides[2];
  band.x_row = attrs.stride_h * x.strides[1];
  band.x_column = attrs.stride_w * x.strides[2];
  band.tap_row = attrs.dilation_h * x.strides[1];
  band.tap_column = attrs.dilation_w * x.strides[2];
  band.y_row = y.strides[1];
  band.y_column = y.strides[2];
  if (has_residual(args)) {
    band.residual_row = args.in(kResidual).strides[1];
    band.residual_column = args.in(kResidual).strides[2];
  }
  band.columns = y.dims[2];
  band.whole_begin = whole.begin;
  band.whole_end = whole.end;
  band.kernel_w = attrs.kernel_w;
  band.channels = x.dims[3];
  return band;
}

// So many rows that the input rows of a band stay in the second-level cache while the channels go over them.
int64_t rows_of_band(const DepthwiseBand& band) {
  constexpr int64_t kBandFloats = 64 * 1024;
  return std::max<int64_t>(1, kBandFloats / std::max<int64_t>(1, std::abs(band.x_row)));
}

Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<DepthwiseF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  const GemmF32Kernels& kernels = gemm_f32_kernels(context.isa);
  const GemmEpilogue epilogue =
      gemm_epilogue({static_cast<Activation>(attrs.act), attrs.act_alpha, attrs.act_beta}, attrs.add_before_act != 0);
  const DepthwiseBand all = band_of(args, context.state);
  const int64_t height = y.dims[1], most = rows_of_band(all);
  const double row_ns = static_cast<double>(y.dims[2]) * y.dims[3] * attrs.kernel_h * attrs.kernel_w * 0.05;
  parallel_for(context, y.dims[0] * height, row_ns, [&](int64_t begin, int64_t end, int) {
    DepthwiseBand band = all;
    for (int64_t row = begin; row < end; row += band.rows) {
      const int64_t n = row / height;
      band.first_row = row % height;
      band.rows = std::min({most, end - row, height - band.first_row});
      band.x = x.as<const float>() + n * x.strides[0];
      band.y = y.as<float>() + n * y.strides[0];
      if (has_residual(args)) band.residual = args.in(kResidual).as<const float>() + n * args.in(kResidual).strides[0];
      kernels.depthwise(epilogue, band);
    }
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return std::string("gemm_f32_") + gemm_f32_kernel_space(isa); }

}  // namespace

const OpDef kDepthwiseF32Op = {Opcode::kDepthwiseF32, "depthwise_f32", check, nullptr, run,
                               state_bytes,           prepare,         kernel};

}  // namespace edgekit
