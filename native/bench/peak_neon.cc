// smull and sadalp on 8 accumulators.
#include <arm_neon.h>

#include "bench/peak.h"

namespace edgekit::bench {

double run_peak_neon(long rounds) {
  constexpr int kSums = 8;
  int32x4_t sums[kSums];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  int8x8_t a = vdup_n_s8(3);
  const int8x8_t b = vdup_n_s8(5);
  for (long round = 0; round < rounds; ++round) {
    for (int32x4_t& sum : sums) {
      sum = vpadalq_s16(sum, vmull_s8(a, b));
      asm volatile("" : "+w"(a));  // keeps the products from being computed once for all
    }
  }
  for (int32x4_t& sum : sums) asm volatile("" : "+w"(sum));
  return static_cast<double>(rounds) * kSums * 8;
}

}  // namespace edgekit::bench
