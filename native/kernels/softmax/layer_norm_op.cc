#include <cmath>

#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/softmax/softmax.h"

namespace edgekit {
namespace {

// A dense parameter of the normalised dims.
Status check_parameter(const char* name, const TensorView& parameter, const TensorView& x, int axes) {
  int64_t dims[kMaxRank];
  for (int i = 0; i < axes; ++i) dims[i] = x.dims[x.rank - axes + i];
  return expect_dense(name, parameter, Dtype::kF32, dims, axes);
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<LayerNormAttrs>();
  const TensorView& x = args.in(0);
  EK_RETURN_IF_ERROR(expect_dtype("x", x, Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_dtype("y", args.out(0), Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_same_dims("x", x, "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_rank("x", x, 1, kMaxRank));
  EK_RETURN_IF_ERROR(expect_in_range("axes", attrs.axes, 1, x.rank));
  EK_RETURN_IF_ERROR(expect_in_range("rms", attrs.rms, 0, 1));
  if (!std::isfinite(attrs.epsilon)) return invalid("layer_norm: epsilon is not finite");
  for (int i = 1; i < args.input_count; ++i) {
    if (args.inputs[i] == nullptr) continue;
    EK_RETURN_IF_ERROR(check_parameter(i == 1 ? "gamma" : "beta", args.in(i), x, attrs.axes));
  }
  return expect_writable("y", args.out(0));
}

// The loops over lines (outer dims) and within a line (normalised dims).
struct LineLoops {
  LoopNest<2> lines, within;
  bool dense() const {
    return within.rank == 1 && (within.run_length() == 1 || (within.run_stride(0) == 1 && within.run_stride(1) == 1));
  }
  int64_t length() const { return within.run_count() * within.run_length(); }
};

LineLoops line_loops(const OpArgs& args) {
  const TensorView &x = args.in(0), &y = args.out(0);
  LineLoops loops;
  for (int i = 0; i < x.rank; ++i) {
    const int64_t strides[2] = {x.strides[i], y.strides[i]};
    append_loop(i < x.rank - args.attrs<LayerNormAttrs>().axes ? loops.lines : loops.within, x.dims[i], strides);
  }
  return loops;
}

size_t worker_bytes(const LineLoops& loops) {
  return loops.dense() ? 0 : (2 * static_cast<size_t>(loops.length()) * sizeof(float) + 63) / 64 * 64;
}

size_t scratch_bytes(const OpArgs& args, int threads, Isa) {
  return worker_bytes(line_loops(args)) * static_cast<size_t>(threads);
}

// One line with any strides, through dense copies.
void staged_line(const SoftmaxKernels& kernels, const LayerNormSpec& spec, const LoopNest<2>& within, const float* x,
                 float* y, float* scratch) {
  const int64_t run_length = within.run_length();
  float* dense_x = scratch;
  float* dense_y = scratch + spec.length;
  int64_t place = 0;
  for_each_run(within, 0, within.run_count(), [&](const int64_t(&at)[2]) {
    for (int64_t i = 0; i < run_length; ++i) dense_x[place++] = x[at[0] + i * within.run_stride(0)];
  });
  kernels.layer_norm(spec, dense_x, dense_y);
  place = 0;
  for_each_run(within, 0, within.run_count(), [&](const int64_t(&at)[2]) {
    for (int64_t i = 0; i < run_length; ++i) y[at[1] + i * within.run_stride(1)] = dense_y[place++];
  });
}

Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<LayerNormAttrs>();
  const LineLoops loops = line_loops(args);
  const auto parameter = [&](int i) {
    return i < args.input_count && args.inputs[i] != nullptr ? args.in(i).as<const float>() : nullptr;
  };
  const LayerNormSpec spec = {loops.length(), parameter(1), parameter(2), attrs.epsilon, attrs.rms != 0};
  const SoftmaxKernels& kernels = softmax_kernels(context.isa);
  const bool dense = loops.dense();
  const int64_t run_length = loops.lines.run_length();
  const double line_ns = 20.0 + 0.5 * static_cast<double>(spec.length);
  parallel_for(context, loops.lines.run_count() * run_length, line_ns, [&](int64_t begin, int64_t end, int worker) {
    float* scratch = reinterpret_cast<float*>(context.scratch + worker_bytes(loops) * static_cast<size_t>(worker));
    for (int64_t line = begin; line < end; ++line) {
      for_each_run(loops.lines, line / run_length, line / run_length + 1, [&](const int64_t(&at)[2]) {
        const float* x = args.in(0).as<const float>() + at[0] + line % run_length * loops.lines.run_stride(0);
        float* y = args.out(0).as<float>() + at[1] + line % run_length * loops.lines.run_stride(1);
        dense ? kernels.layer_norm(spec, x, y) : staged_line(kernels, spec, loops.within, x, y, scratch);
      });
    }
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return std::string("softmax_") + softmax_kernel_space(isa); }

}  // namespace

const OpDef kLayerNormOp = {Opcode::kLayerNorm, "layer_norm", check, scratch_bytes, run, nullptr, nullptr, kernel};

}  // namespace edgekit
