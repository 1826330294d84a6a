#include "kernels/gemm/gemm_q8.h"

#include <algorithm>
#include <iterator>

namespace edgekit {
namespace {

constexpr GemmQ8Kernel kKernels[] = {
#define EK_GEMM_Q8(name, space, isa, activations, mr, nr, kg, skips, mac_ns) \
  {#name, Isa::isa, Dtype::activations, mr, nr, kg, DepthSkips::skips, mac_ns, space::name},
#include "kernels/gemm/kernels.inc"
#undef EK_GEMM_Q8
};

bool are_peers(const GemmQ8Kernel& a, const GemmQ8Kernel& b) {
  return a.isa == b.isa && a.activations == b.activations && a.nr == b.nr && a.kg == b.kg;
}

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

// What is preferred comes first in the manifest.
int gemm_q8_peer_count(const GemmQ8Kernel& kernel) {
  return static_cast<int>(
      std::count_if(&kernel, std::end(kKernels), [&](const GemmQ8Kernel& other) { return are_peers(kernel, other); }));
}

const GemmQ8Kernel& gemm_q8_peer(const GemmQ8Kernel& kernel, int index) {
  const GemmQ8Kernel* peer = &kernel;
  while (index-- > 0)
    peer =
        std::find_if(peer + 1, std::end(kKernels), [&](const GemmQ8Kernel& other) { return are_peers(kernel, other); });
  return *peer;
}

}  // namespace edgekit
