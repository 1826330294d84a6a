// Dispatch: the manifest as a table.
#include "kernels/_skeleton/skeleton.h"

#include "core/cpu_features.h"

namespace edgekit {
namespace {

constexpr SkeletonKernel kKernels[] = {
#define EK_SKELETON(name, space, isa, element_ns) {#name, Isa::isa, element_ns, space::name},
#include "kernels/_skeleton/kernels.inc"
#undef EK_SKELETON
};

}  // namespace

SkeletonKernels skeleton_kernels() { return {kKernels, kKernels + sizeof(kKernels) / sizeof(kKernels[0])}; }

const SkeletonKernel& select_skeleton(Isa isa) {
  const SkeletonKernel* chosen = kKernels;
  for (const SkeletonKernel& kernel : kKernels) {
    if (isa_includes(isa, kernel.isa)) chosen = &kernel;
  }
  return *chosen;
}

}  // namespace edgekit
