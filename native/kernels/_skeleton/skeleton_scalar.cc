// The reference that every other kernel equals bit for bit.
#include "kernels/_skeleton/skeleton.h"

namespace edgekit::scalar {

void add_u8_1_scalar(const SkeletonRow& r) noexcept {
  for (int64_t i = 0; i < r.n; ++i) {
    const int sum = r.a[i] + r.b[i];
    r.y[i] = static_cast<uint8_t>(sum < 255 ? sum : 255);
  }
}

}  // namespace edgekit::scalar
