#include "kernels/elementwise_q8/elementwise_q8.h"

#include "core/cpu_features.h"

namespace edgekit {
namespace {

constexpr ElementwiseQ8Kernels kKernels[] = {
#define EK_ELEMENTWISE_Q8(space, isa, element_ns) \
  {"elementwise_q8_" #space, Isa::isa, element_ns, space::lut_q8_row, space::binary_q8_row},
#include "kernels/elementwise_q8/kernels.inc"
#undef EK_ELEMENTWISE_Q8
};

}  // namespace

ElementwiseQ8Table elementwise_q8_kernels() { return {kKernels, kKernels + sizeof(kKernels) / sizeof(kKernels[0])}; }

const ElementwiseQ8Kernels& select_elementwise_q8(Isa isa) {
  const ElementwiseQ8Kernels* chosen = kKernels;
  for (const ElementwiseQ8Kernels& kernels : kKernels) {
    if (isa_includes(isa, kernels.isa)) chosen = &kernels;
  }
  return *chosen;
}

}  // namespace edgekit
