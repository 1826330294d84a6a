// vpdpbusd on 24 accumulators, as the 6x64 tile has them.
#include <immintrin.h>

#include "bench/peak.h"

namespace edgekit::bench {

double run_peak_avx512_vnni(long rounds) {
  constexpr int kSums = 24;
  __m512i sums[kSums];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(5);
  for (long round = 0; round < rounds; ++round) {
    for (__m512i& sum : sums) asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
  return static_cast<double>(rounds) * kSums * 64;
}

}  // namespace edgekit::bench
