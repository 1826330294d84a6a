// A kernel family to start from: copy the folder, rename, and follow the comments. This one adds u8 with saturation,
// y = min(a + b, 255). It is compiled and run by native/tests/skeleton_test.cc only.
//
// The interface says what a kernel gets, with one comment for alignment, aliasing and legal extents.
#ifndef EDGEKIT_KERNELS_SKELETON_SKELETON_H_
#define EDGEKIT_KERNELS_SKELETON_SKELETON_H_

#include <cstdint>

#include "core/tensor.h"

namespace edgekit {

// Dense rows of n >= 0 elements. y may equal a or b; no other overlap. Nothing needs an alignment.
struct SkeletonRow {
  const uint8_t* a;
  const uint8_t* b;
  uint8_t* y;
  int64_t n;
};

struct SkeletonKernel {
  const char* name;
  Isa isa;
  double element_ns;  // rough cost of one element, to decide on threads
  void (*add_row)(const SkeletonRow& row) noexcept;
};

struct SkeletonKernels {
  const SkeletonKernel* begin_;
  const SkeletonKernel* end_;
  const SkeletonKernel* begin() const { return begin_; }
  const SkeletonKernel* end() const { return end_; }
};

// Every kernel of this build, whether or not this CPU can run it.
SkeletonKernels skeleton_kernels();

// The best one for programs of `isa`.
const SkeletonKernel& select_skeleton(Isa isa);

// Declarations, from the manifest. Tests and benchmarks include it in the same way.
#define EK_SKELETON(name, space, isa, element_ns) \
  namespace space {                               \
  void name(const SkeletonRow& row) noexcept;     \
  }
#include "kernels/_skeleton/kernels.inc"
#undef EK_SKELETON

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_SKELETON_SKELETON_H_
