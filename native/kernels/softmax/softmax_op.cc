#include <algorithm>

#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/softmax/softmax.h"

namespace edgekit {
namespace {

#define EK_KERNELS(isa, space) {Isa::isa, #space, space::softmax_kernels},
constexpr Variant<SoftmaxKernels> kVariants[] = {
#include "kernels/softmax/kernels.inc"
};
#undef EK_KERNELS

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<SoftmaxAttrs>();
  EK_RETURN_IF_ERROR(expect_dtype("x", args.in(0), Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_dtype("y", args.out(0), Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_same_dims("x", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_rank("x", args.in(0), 1, kMaxRank));
  EK_RETURN_IF_ERROR(expect_in_range("axis", attrs.axis, 0, args.in(0).rank - 1));
  EK_RETURN_IF_ERROR(expect_in_range("log", attrs.log, 0, 1));
  return expect_writable("y", args.out(0));
}

// Two dense lines for each worker, for operands that are strided along the axis.
size_t worker_bytes(const OpArgs& args) {
  const size_t length = static_cast<size_t>(args.in(0).dims[args.attrs<SoftmaxAttrs>().axis]);
  return (2 * length * sizeof(float) + 63) / 64 * 64;
}

size_t scratch_bytes(const OpArgs& args, int threads, Isa) { return worker_bytes(args) * static_cast<size_t>(threads); }

// One run of lines: `count` lines, x_step and y_step apart.
struct LineRun {
  const float* x;
  float* y;
  int64_t count, x_step, y_step;
};

// Lines with any strides, through dense copies.
void staged_lines(const SoftmaxKernels& kernels, const SoftmaxLines& spec, const LineRun& run, int64_t x_stride,
                  int64_t y_stride, float* scratch) {
  float* dense_x = scratch;
  float* dense_y = scratch + spec.length;
  for (int64_t line = 0; line < run.count; ++line) {
    const float* x = run.x + line * run.x_step;
    float* y = run.y + line * run.y_step;
    for (int64_t i = 0; i < spec.length; ++i) dense_x[i] = x[i * x_stride];
    kernels.softmax_lines({1, spec.length, 0, 0, spec.log}, dense_x, dense_y);
    for (int64_t i = 0; i < spec.length; ++i) y[i * y_stride] = dense_y[i];
  }
}

void softmax_run(const SoftmaxKernels& kernels, const OpArgs& args, LineRun run, float* scratch) {
  const auto& attrs = args.attrs<SoftmaxAttrs>();
  const int64_t length = args.in(0).dims[attrs.axis];
  const int64_t x_stride = args.in(0).strides[attrs.axis], y_stride = args.out(0).strides[attrs.axis];
  if (length == 1 || (x_stride == 1 && y_stride == 1)) {
    kernels.softmax_lines({run.count, length, run.x_step, run.y_step, attrs.log != 0}, run.x, run.y);
    return;
  }
  const SoftmaxLines columns = {1, length, x_stride, y_stride, attrs.log != 0};
  if (run.x_step == 1 && run.y_step == 1) {
    while (run.count >= kernels.lanes) {
      kernels.softmax_columns(columns, run.x, run.y);
      run.x += kernels.lanes;
      run.y += kernels.lanes;
      run.count -= kernels.lanes;
    }
  }
  staged_lines(kernels, columns, run, x_stride, y_stride, scratch);
}

Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<SoftmaxAttrs>();
  const TensorView &x = args.in(0), &y = args.out(0);
  const SoftmaxKernels& kernels = softmax_kernels(context.isa);
  LoopNest<2> lines;
  for (int i = 0; i < x.rank; ++i) {
    const int64_t strides[2] = {x.strides[i], y.strides[i]};
    if (i != attrs.axis) append_loop(lines, x.dims[i], strides);
  }
  // Units are groups of lines within one run, so that each call of a kernel has several.
  constexpr int64_t kGroup = 64;
  const int64_t groups = (lines.run_length() + kGroup - 1) / kGroup;
  const double group_ns = static_cast<double>(std::min(kGroup, lines.run_length())) * (10.0 + 2.0 * x.dims[attrs.axis]);
  parallel_for(context, lines.run_count() * groups, group_ns, [&](int64_t begin, int64_t end, int worker) {
    float* scratch = reinterpret_cast<float*>(context.scratch + worker_bytes(args) * static_cast<size_t>(worker));
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % groups * kGroup;
      const int64_t count = std::min(kGroup, lines.run_length() - first);
      for_each_run(lines, unit / groups, unit / groups + 1, [&](const int64_t(&at)[2]) {
        softmax_run(
            kernels, args,
            {x.as<const float>() + at[0] + first * lines.run_stride(0),
             y.as<float>() + at[1] + first * lines.run_stride(1), count, lines.run_stride(0), lines.run_stride(1)},
            scratch);
      });
    }
  });
  return Status::ok();
}

}  // namespace

const SoftmaxKernels& softmax_kernels(Isa isa) { return select_variant(kVariants, isa); }

const OpDef kSoftmaxOp = {Opcode::kSoftmax, "softmax", check, scratch_bytes, run};

}  // namespace edgekit
