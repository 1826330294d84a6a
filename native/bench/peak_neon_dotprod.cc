// sdot by lane on 16 accumulators.
#include <arm_neon.h>

#include "bench/peak.h"

namespace edgekit::bench {

double run_peak_neon_dotprod(long rounds) {
  constexpr int kSums = 16;
  int32x4_t sums[kSums];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  int8x16_t a = vdupq_n_s8(3);
  const int8x16_t b = vdupq_n_s8(5);
  for (long round = 0; round < rounds; ++round) {
    for (int32x4_t& sum : sums) {
      sum = vdotq_laneq_s32(sum, b, a, 0);
      asm volatile("" : "+w"(a));
    }
  }
  for (int32x4_t& sum : sums) asm volatile("" : "+w"(sum));
  return static_cast<double>(rounds) * kSums * 16;
}

}  // namespace edgekit::bench
