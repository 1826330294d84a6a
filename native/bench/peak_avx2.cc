// vpmaddwd and vpaddd on 12 accumulators, as the 6x16 tile has them.
#include <immintrin.h>

#include "bench/peak.h"

namespace edgekit::bench {

double run_peak_avx2(long rounds) {
  constexpr int kSums = 12;
  __m256i sums[kSums];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  __m256i a = _mm256_set1_epi16(3);
  __m256i b = _mm256_set1_epi16(5);
  for (long round = 0; round < rounds; ++round) {
    for (__m256i& sum : sums) {
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
      asm volatile("" : "+x"(a));  // keeps the products from being computed once for all
    }
  }
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
  return static_cast<double>(rounds) * kSums * 16;
}

}  // namespace edgekit::bench
