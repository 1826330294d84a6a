#include "kernels/copy/planes.h"
#include "kernels/copy/transpose.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/scalar_math.h"
#include "kernels/elementwise/staged_run.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

bool is_for_integers(Activation kind) {
  return kind == Activation::kNone || kind == Activation::kAbs || kind == Activation::kNeg ||
         kind == Activation::kSign || kind == Activation::kClip || kind == Activation::kRelu;
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<UnaryAttrs>();
  EK_RETURN_IF_ERROR(expect_in_range("act", attrs.act, 0, kActivationCount - 1));
  EK_RETURN_IF_ERROR(expect_same_dtype("x", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("x", args.in(0), "y", args.out(0)));
  const auto kind = static_cast<Activation>(attrs.act);
  bool fits = false;
  switch (args.in(0).dtype) {
    case Dtype::kF32:
      fits = kind != Activation::kLogicalNot;
      break;
    case Dtype::kI32:
    case Dtype::kI64:
      fits = is_for_integers(kind);
      break;
    case Dtype::kBool:
      fits = kind == Activation::kLogicalNot;
      break;
    default:
      break;
  }
  if (!fits) return invalid("unary %s on %s", name_of(kind), name_of(args.in(0).dtype));
  return expect_writable("y", args.out(0));
}

// y = f(x) element by element.
template <typename T, typename F>
void run_elements(const OpArgs& args, RunContext& context, F&& f) {
  const TensorView* const views[2] = {&args.in(0), &args.out(0)};
  const LoopNest<2> nest = collapse_by_output(views);
  const int64_t step_x = nest.run_stride(0), step_y = nest.run_stride(1);
  parallel_runs(context, nest, 0.5, [&](const int64_t(&at)[2], int64_t count) {
    const T* x = args.in(0).as<const T>() + at[0];
    T* y = args.out(0).as<T>() + at[1];
    for (int64_t i = 0; i < count; ++i) y[i * step_y] = f(x[i * step_x]);
  });
}

template <typename T>
void run_integers(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<UnaryAttrs>();
  const T low = saturate_to<T>(attrs.alpha), high = saturate_to<T>(attrs.beta);
  switch (static_cast<Activation>(attrs.act)) {
    case Activation::kAbs:
      return run_elements<T>(args, context, [](T x) { return x < 0 ? wrapping_neg(x) : x; });
    case Activation::kNeg:
      return run_elements<T>(args, context, [](T x) { return wrapping_neg(x); });
    case Activation::kSign:
      return run_elements<T>(args, context, [](T x) -> T { return (x > 0) - (x < 0); });
    case Activation::kRelu:
      return run_elements<T>(args, context, [](T x) -> T { return x < 0 ? 0 : x; });
    case Activation::kClip:
      return run_elements<T>(args, context, [=](T x) { return std::min(std::max(x, low), high); });
    default:
      return run_elements<T>(args, context, [](T x) { return x; });
  }
}

double cost_ns(Activation kind) {
  if (!has_vector_form(kind)) return 20.0;
  return kind <= Activation::kLeakyRelu || kind == Activation::kAffine ? 0.4 : 2.0;
}

// Transposed operands: pieces of planes come to y first, and are activated there while they are in the cache.
void run_planes(const OpArgs& args, RunContext& context, const LoopNest<2>& nest, const ActivationSpec& act) {
  const ElementwiseKernels& kernels = elementwise_kernels(context.isa);
  parallel_planes(context, nest, cost_ns(act.kind), [&](const PlanePiece& p) {
    float* y = args.out(0).as<float>() + p.y_at;
    transpose_plane(args.in(0).as<const float>() + p.x_at, p.x_step, y, p.y_step, p.rows, p.columns, sizeof(float));
    for (int64_t j = 0; j < p.columns; ++j) activate(kernels, act, y + j * p.y_step, y + j * p.y_step, p.rows);
  });
}

void run_floats(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<UnaryAttrs>();
  const ActivationSpec act{static_cast<Activation>(attrs.act), attrs.alpha, attrs.beta};
  const ElementwiseKernels& kernels = elementwise_kernels(context.isa);
  const TensorView* const views[2] = {&args.in(0), &args.out(0)};
  const LoopNest<2> nest = collapse_by_output(views);
  if (plane_loop(nest) >= 0) return run_planes(args, context, nest, act);
  const int64_t step_x = nest.run_stride(0), step_y = nest.run_stride(1);
  parallel_runs(context, nest, cost_ns(act.kind), [&](const int64_t(&at)[2], int64_t length) {
    float stage_x[kStageElements], stage_y[kStageElements];
    const int64_t piece = step_x == 1 && step_y == 1 ? length : kStageElements;
    for (int64_t first = 0; first < length; first += piece) {
      const int64_t count = std::min(piece, length - first);
      const float* x = stage_in(args.in(0).as<const float>() + at[0] + first * step_x, step_x, count, stage_x);
      float* const out = args.out(0).as<float>() + at[1] + first * step_y;
      float* y = stage_for(out, step_y, count, stage_y);
      activate(kernels, act, x, y, count);
      stage_out(y, out, step_y, count);
    }
  });
}

Status run(const OpArgs& args, RunContext& context) {
  switch (args.in(0).dtype) {
    case Dtype::kF32:
      run_floats(args, context);
      break;
    case Dtype::kI32:
      run_integers<int32_t>(args, context);
      break;
    case Dtype::kI64:
      run_integers<int64_t>(args, context);
      break;
    default:
      run_elements<uint8_t>(args, context, [](uint8_t x) -> uint8_t { return x == 0; });
  }
  return Status::ok();
}

std::string kernel(const OpArgs& args, Isa isa) {
  const auto act = static_cast<Activation>(args.attrs<UnaryAttrs>().act);
  const bool in_vectors = args.in(0).dtype == Dtype::kF32 && has_vector_form(act);
  return std::string("elementwise_") + (in_vectors ? elementwise_kernel_space(isa) : "scalar");
}

}  // namespace

const OpDef kUnaryOp = {Opcode::kUnary, "unary", check, nullptr, run, nullptr, nullptr, kernel};

}  // namespace edgekit
