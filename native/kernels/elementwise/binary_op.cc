#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/scalar_math.h"
#include "kernels/elementwise/staged_run.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

bool is_comparison(BinaryKind kind) { return kind >= BinaryKind::kEqual && kind <= BinaryKind::kGreaterEqual; }
bool is_logical(BinaryKind kind) { return kind >= BinaryKind::kLogicalAnd && kind <= BinaryKind::kLogicalXor; }

Status check_dtypes(BinaryKind kind, const TensorView& a, const TensorView& y) {
  const bool wants_bool = is_logical(kind) || (is_comparison(kind) && a.dtype == Dtype::kBool);
  if (wants_bool && (a.dtype != Dtype::kBool || (is_comparison(kind) && kind != BinaryKind::kEqual))) {
    return invalid("binary %s on %s", name_of(kind), name_of(a.dtype));
  }
  if (!wants_bool && a.dtype == Dtype::kBool) return invalid("binary %s on bool", name_of(kind));
  if (is_comparison(kind) && is_q8(a.dtype)) return invalid("binary %s on %s", name_of(kind), name_of(a.dtype));
  return expect_dtype("y", y, is_comparison(kind) ? Dtype::kBool : a.dtype);
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<BinaryAttrs>();
  EK_RETURN_IF_ERROR(expect_in_range("kind", attrs.kind, 0, kBinaryKindCount - 1));
  EK_RETURN_IF_ERROR(expect_same_dtype("a", args.in(0), "b", args.in(1)));
  EK_RETURN_IF_ERROR(check_dtypes(static_cast<BinaryKind>(attrs.kind), args.in(0), args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("a", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("b", args.in(1), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_float_activation("act", attrs.act));
  if (attrs.act != 0 && args.out(0).dtype != Dtype::kF32) return invalid("binary: a fused act needs f32");
  return expect_writable("y", args.out(0));
}

// y = f(a, b) element by element, for operands of type T and results of type U.
template <typename T, typename U, typename F>
void run_elements(const OpArgs& args, RunContext& context, double element_ns, F&& f) {
  const TensorView* const views[3] = {&args.in(0), &args.in(1), &args.out(0)};
  const LoopNest<3> nest = collapse_by_output(views);
  const int64_t step_a = nest.run_stride(0), step_b = nest.run_stride(1), step_y = nest.run_stride(2);
  parallel_runs(context, nest, element_ns, [&](const int64_t(&at)[3], int64_t count) {
    const T* a = args.in(0).as<const T>() + at[0];
    const T* b = args.in(1).as<const T>() + at[1];
    U* y = args.out(0).as<U>() + at[2];
    if (step_a == 1 && step_b == 1 && step_y == 1) {
      for (int64_t i = 0; i < count; ++i) y[i] = f(a[i], b[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) y[i * step_y] = f(a[i * step_a], b[i * step_b]);
    }
  });
}

template <BinaryKind kind, typename T>
void run_arithmetic(const OpArgs& args, RunContext& context) {
  run_elements<T, T>(args, context, 4.0, [](T a, T b) { return arithmetic<kind>(a, b); });
}

template <BinaryKind kind, typename T>
void run_comparison(const OpArgs& args, RunContext& context) {
  run_elements<T, bool>(args, context, 0.5, [](T a, T b) { return compare<kind>(a, b); });
}

template <typename T>
void run_comparisons(BinaryKind kind, const OpArgs& args, RunContext& context) {
  switch (kind) {
    case BinaryKind::kEqual:
      return run_comparison<BinaryKind::kEqual, T>(args, context);
    case BinaryKind::kLess:
      return run_comparison<BinaryKind::kLess, T>(args, context);
    case BinaryKind::kGreater:
      return run_comparison<BinaryKind::kGreater, T>(args, context);
    case BinaryKind::kLessEqual:
      return run_comparison<BinaryKind::kLessEqual, T>(args, context);
    default:
      return run_comparison<BinaryKind::kGreaterEqual, T>(args, context);
  }
}

template <typename T>
void run_integers(BinaryKind kind, const OpArgs& args, RunContext& context) {
  if (is_comparison(kind)) return run_comparisons<T>(kind, args, context);
  switch (kind) {
    case BinaryKind::kAdd:
      return run_arithmetic<BinaryKind::kAdd, T>(args, context);
    case BinaryKind::kSub:
      return run_arithmetic<BinaryKind::kSub, T>(args, context);
    case BinaryKind::kMul:
      return run_arithmetic<BinaryKind::kMul, T>(args, context);
    case BinaryKind::kDiv:
      return run_arithmetic<BinaryKind::kDiv, T>(args, context);
    case BinaryKind::kPow:
      return run_arithmetic<BinaryKind::kPow, T>(args, context);
    case BinaryKind::kMin:
      return run_arithmetic<BinaryKind::kMin, T>(args, context);
    case BinaryKind::kMax:
      return run_arithmetic<BinaryKind::kMax, T>(args, context);
    case BinaryKind::kPrelu:
      return run_arithmetic<BinaryKind::kPrelu, T>(args, context);
    case BinaryKind::kMod:
      return run_arithmetic<BinaryKind::kMod, T>(args, context);
    default:
      return run_arithmetic<BinaryKind::kFmod, T>(args, context);
  }
}

void run_booleans(BinaryKind kind, const OpArgs& args, RunContext& context) {
  switch (kind) {
    case BinaryKind::kLogicalAnd:
      return run_elements<uint8_t, bool>(args, context, 0.5, [](uint8_t a, uint8_t b) { return a != 0 && b != 0; });
    case BinaryKind::kLogicalOr:
      return run_elements<uint8_t, bool>(args, context, 0.5, [](uint8_t a, uint8_t b) { return a != 0 || b != 0; });
    case BinaryKind::kLogicalXor:
      return run_elements<uint8_t, bool>(args, context, 0.5, [](uint8_t a, uint8_t b) { return (a != 0) != (b != 0); });
    default:
      return run_elements<uint8_t, bool>(args, context, 0.5, [](uint8_t a, uint8_t b) { return (a != 0) == (b != 0); });
  }
}

void float_run(BinaryKind kind, const ElementwiseKernels& kernels, const float* a, const float* b, float* y,
               int64_t count) {
  switch (kind) {
    case BinaryKind::kPow:
      for (int64_t i = 0; i < count; ++i) y[i] = arithmetic<BinaryKind::kPow>(a[i], b[i]);
      return;
    case BinaryKind::kMod:
      for (int64_t i = 0; i < count; ++i) y[i] = arithmetic<BinaryKind::kMod>(a[i], b[i]);
      return;
    case BinaryKind::kFmod:
      for (int64_t i = 0; i < count; ++i) y[i] = arithmetic<BinaryKind::kFmod>(a[i], b[i]);
      return;
    default:
      kernels.binary(kind, a, b, y, count);
  }
}

void run_floats(BinaryKind kind, const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<BinaryAttrs>();
  const ActivationSpec act{static_cast<Activation>(attrs.act), attrs.act_alpha, attrs.act_beta};
  const ElementwiseKernels& kernels = elementwise_kernels(context.isa);
  const TensorView* const views[3] = {&args.in(0), &args.in(1), &args.out(0)};
  const LoopNest<3> nest = collapse_by_output(views);
  const int64_t step_a = nest.run_stride(0), step_b = nest.run_stride(1), step_y = nest.run_stride(2);
  const double element_ns = has_vector_form(kind) ? 0.4 : 30.0;
  parallel_runs(context, nest, element_ns, [&](const int64_t(&at)[3], int64_t length) {
    float stage_a[kStageElements], stage_b[kStageElements], stage_y[kStageElements];
    for (int64_t first = 0; first < length; first += kStageElements) {
      const int64_t count = std::min(kStageElements, length - first);
      const float* a = stage_in(args.in(0).as<const float>() + at[0] + first * step_a, step_a, count, stage_a);
      const float* b = stage_in(args.in(1).as<const float>() + at[1] + first * step_b, step_b, count, stage_b);
      float* const out = args.out(0).as<float>() + at[2] + first * step_y;
      float* y = stage_for(out, step_y, count, stage_y);
      float_run(kind, kernels, a, b, y, count);
      if (act.kind != Activation::kNone) activate(kernels, act, y, y, count);
      stage_out(y, out, step_y, count);
    }
  });
}

Status run(const OpArgs& args, RunContext& context) {
  const auto kind = static_cast<BinaryKind>(args.attrs<BinaryAttrs>().kind);
  switch (args.in(0).dtype) {
    case Dtype::kF32:
      is_comparison(kind) ? run_comparisons<float>(kind, args, context) : run_floats(kind, args, context);
      break;
    case Dtype::kI32:
      run_integers<int32_t>(kind, args, context);
      break;
    case Dtype::kI64:
      run_integers<int64_t>(kind, args, context);
      break;
    case Dtype::kU8:
      run_integers<uint8_t>(kind, args, context);
      break;
    case Dtype::kS8:
      run_integers<int8_t>(kind, args, context);
      break;
    case Dtype::kBool:
      run_booleans(kind, args, context);
      break;
  }
  return Status::ok();
}

std::string kernel(const OpArgs& args, Isa isa) {
  const auto kind = static_cast<BinaryKind>(args.attrs<BinaryAttrs>().kind);
  const bool in_vectors = args.in(0).dtype == Dtype::kF32 && has_vector_form(kind);
  return std::string("elementwise_") + (in_vectors ? elementwise_kernel_space(isa) : "scalar");
}

}  // namespace

const OpDef kBinaryOp = {Opcode::kBinary, "binary", check, nullptr, run, nullptr, nullptr, kernel};

}  // namespace edgekit
