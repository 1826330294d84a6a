// 16 elements at a time; the last few go to the scalar kernel.
#include <arm_neon.h>

#include "kernels/_skeleton/skeleton.h"

namespace edgekit::neon {

void add_u8_16_neon(const SkeletonRow& r) noexcept {
  int64_t i = 0;
  for (; i + 16 <= r.n; i += 16) vst1q_u8(r.y + i, vqaddq_u8(vld1q_u8(r.a + i), vld1q_u8(r.b + i)));
  scalar::add_u8_1_scalar({r.a + i, r.b + i, r.y + i, r.n - i});
}

}  // namespace edgekit::neon
