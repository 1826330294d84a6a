// Baseline of the architecture: what the compiler makes of plain C++.
#include "kernels/roofline/roofline.h"

namespace edgekit {
namespace scalar {
namespace {

constexpr int kLanes = 32;

template <typename T>
void opaque(T* values) noexcept {  // the compiler must assume that they changed
  __asm__ volatile("" : : "r"(values) : "memory");
}

}  // namespace

int64_t int8_macs(int64_t rounds) noexcept {
  int8_t a[kLanes], b[kLanes];
  int32_t sums[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) a[i] = b[i] = static_cast<int8_t>(i);
  for (int64_t round = 0; round < rounds; ++round) {
    opaque(a);
    for (int i = 0; i < kLanes; ++i) sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + a[i] * b[i]);
  }
  opaque(sums);
  return rounds * kLanes;
}

int64_t fp32_macs(int64_t rounds) noexcept {
  float a[kLanes], b[kLanes];
  float sums[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) a[i] = b[i] = 1.0f / static_cast<float>(i + 1);
  for (int64_t round = 0; round < rounds; ++round) {
    opaque(a);
    for (int i = 0; i < kLanes; ++i) sums[i] += a[i] * b[i];
  }
  opaque(sums);
  return rounds * kLanes;
}

}  // namespace scalar
}  // namespace edgekit
