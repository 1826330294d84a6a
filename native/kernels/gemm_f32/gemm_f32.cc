#include "kernels/gemm_f32/gemm_f32.h"

#include <limits>

#include "kernels/operand_check.h"

namespace edgekit {
namespace {

#define EK_KERNELS(isa, space) {Isa::isa, #space, space::gemm_f32_kernels},
constexpr Variant<GemmF32Kernels> kVariants[] = {
#include "kernels/gemm_f32/kernels.inc"
};
#undef EK_KERNELS

}  // namespace

const GemmF32Kernels& gemm_f32_kernels(Isa isa) { return select_variant(kVariants, isa); }

const char* gemm_f32_kernel_space(Isa isa) { return best_variant(kVariants, isa).name; }

const GemmF32Kernels& gemm_f32_kernels(Isa isa, int nr) {
  const GemmF32Kernels& best = gemm_f32_kernels(isa);
  return best.nr == nr ? best : scalar::gemm_f32_kernels();
}

GemmEpilogue gemm_epilogue(const ActivationSpec& act, bool add_before_act, float scale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  GemmEpilogue epilogue = {act, add_before_act, scale, true, -kInfinity, kInfinity};
  switch (act.kind) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      epilogue.low = 0.0f;
      break;
    case Activation::kClip:
      epilogue.low = act.alpha;
      epilogue.high = act.beta;
      break;
    default:
      epilogue.clamps = false;
  }
  return epilogue;
}

Status expect_fused_activation(const char* name, int32_t value) {
  EK_RETURN_IF_ERROR(expect_float_activation(name, value));
  const auto kind = static_cast<Activation>(value);
  if (!has_vector_form(kind)) return invalid("%s: %s cannot be fused", name, name_of(kind));
  return Status::ok();
}

}  // namespace edgekit
