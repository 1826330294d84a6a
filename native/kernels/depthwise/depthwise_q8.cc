#include "kernels/depthwise/depthwise_q8.h"

#include "core/cpu_features.h"

namespace edgekit {
namespace {

constexpr DepthwiseQ8Kernel kKernels[] = {
#define EK_DEPTHWISE_Q8(name, space, isa, activations, kernel, stride, channels, narrowest, out_rows, mac_ns)         \
  {#name,       Isa::isa,           Dtype::activations,        kernel, stride, channels, narrowest, out_rows, mac_ns, \
   space::name, space::pack_##name, space::packed_bytes_##name},
#include "kernels/depthwise/kernels.inc"
#undef EK_DEPTHWISE_Q8
};

}  // namespace

DepthwiseQ8Kernels depthwise_q8_kernels() { return {kKernels, kKernels + sizeof(kKernels) / sizeof(kKernels[0])}; }

bool depthwise_q8_suits(const DepthwiseQ8Kernel& kernel, const ConvWindow& w) {
  if (kernel.kernel == 0) return true;
  return w.kernel_h == kernel.kernel && w.kernel_w == kernel.kernel && w.stride_h == kernel.stride &&
         w.stride_w == kernel.stride && w.dilation_h == 1 && w.dilation_w == 1;
}

// Of the last instruction set that every CPU with `isa` has, the first.
const DepthwiseQ8Kernel& select_depthwise_q8(Isa isa, Dtype activations, const ConvWindow& window) {
  const DepthwiseQ8Kernel* chosen = nullptr;
  for (const DepthwiseQ8Kernel& kernel : kKernels) {
    if (kernel.activations != activations || !isa_includes(isa, kernel.isa) || !depthwise_q8_suits(kernel, window))
      continue;
    if (chosen == nullptr || kernel.isa != chosen->isa) chosen = &kernel;
  }
  return *chosen;
}

}  // namespace edgekit
