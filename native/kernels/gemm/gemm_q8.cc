#include "kernels/gemm/gemm_q8.h"

namespace edgekit {
namespace {

constexpr GemmQ8Kernel kKernels[] = {
#define EK_GEMM_Q8(name, space, isa, activations, mr, nr, kg, picks_depth, mac_ns) \
  {#name, Isa::isa, Dtype::activations, mr, nr, kg, picks_depth, mac_ns, space::name},
#include "kernels/gemm/kernels.inc"
#undef EK_GEMM_Q8
};

}  // namespace

GemmQ8Kernels gemm_q8_kernels() { return {kKernels, kKernels + sizeof(kKernels) / sizeof(kKernels[0])}; }

const GemmQ8Kernel& select_gemm_q8(Isa isa, Dtype activations, int nr, int kg) {
  const GemmQ8Kernel* chosen = nullptr;
  for (const GemmQ8Kernel& kernel : kKernels) {
    if (kernel.activations != activations) continue;
    if (kernel.isa == Isa::kScalar && chosen == nullptr) chosen = &kernel;
    if (kernel.isa == isa && kernel.nr == nr && kernel.kg == kg) return kernel;
  }
  return *chosen;
}

}  // namespace edgekit
