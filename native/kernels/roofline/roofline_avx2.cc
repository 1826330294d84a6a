#include <immintrin.h>

#include "kernels/roofline/chains.h"
#include "kernels/roofline/roofline.h"

// The asm statements emit nothing: they make each sum and the factor a look changed, or the compiler would share one
// product or one sum among all chains.
namespace edgekit {
namespace avx2 {

// vpmaddubsw, vpmaddwd by ones and vpaddd: exact for the pairs of weights that do not saturate, and products are packed
// so that those are all.
int64_t int8_macs(int64_t rounds) noexcept {
  __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  const __m256i ones = _mm256_set1_epi16(1);
  EK_CHAINS(__m256i);
#define EK_STEP(sum)                                                                \
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones)); \
  __asm__ volatile("" : "+x"(a), "+x"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(32);
}

int64_t fp32_macs(int64_t rounds) noexcept {
  __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(0.25f);
  EK_CHAINS(__m256);
#define EK_STEP(sum)                \
  sum = _mm256_fmadd_ps(a, b, sum); \
  __asm__ volatile("" : "+x"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(8);
}

}  // namespace avx2
}  // namespace edgekit
