#include "kernels/elementwise/elementwise.h"

#include <cmath>

#include "kernels/operand_check.h"

namespace edgekit {
namespace {

#define EK_KERNELS(isa, space) {Isa::isa, #space, space::elementwise_kernels},
constexpr Variant<ElementwiseKernels> kVariants[] = {
#include "kernels/elementwise/kernels.inc"
};
#undef EK_KERNELS

double library_function(Activation kind, double x) {
  switch (kind) {
    case Activation::kSin:
      return std::sin(x);
    case Activation::kCos:
      return std::cos(x);
    case Activation::kTan:
      return std::tan(x);
    case Activation::kAsin:
      return std::asin(x);
    case Activation::kAcos:
      return std::acos(x);
    case Activation::kAtan:
      return std::atan(x);
    case Activation::kSinh:
      return std::sinh(x);
    case Activation::kCosh:
      return std::cosh(x);
    default:
      return x;
  }
}

}  // namespace

bool has_vector_form(Activation kind) {
  switch (kind) {
    case Activation::kSin:
    case Activation::kCos:
    case Activation::kTan:
    case Activation::kAsin:
    case Activation::kAcos:
    case Activation::kAtan:
    case Activation::kSinh:
    case Activation::kCosh:
    case Activation::kLogicalNot:
      return false;
    default:
      return true;
  }
}

bool has_vector_form(BinaryKind kind) {
  return kind <= BinaryKind::kDiv || kind == BinaryKind::kMin || kind == BinaryKind::kMax || kind == BinaryKind::kPrelu;
}

const ElementwiseKernels& elementwise_kernels(Isa isa) { return select_variant(kVariants, isa); }

const char* elementwise_kernel_space(Isa isa) { return best_variant(kVariants, isa).name; }

void activate(const ElementwiseKernels& kernels, const ActivationSpec& spec, const float* x, float* y,
              int64_t n) noexcept {
  if (has_vector_form(spec.kind)) {
    kernels.activate(spec, x, y, n);
    return;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(library_function(spec.kind, static_cast<double>(x[i])));
}

Status expect_float_activation(const char* name, int32_t value) {
  EK_RETURN_IF_ERROR(expect_in_range(name, value, 0, kActivationCount - 1));
  if (static_cast<Activation>(value) == Activation::kLogicalNot) return invalid("%s: logical_not is for bool", name);
  return Status::ok();
}

}  // namespace edgekit
