#include <immintrin.h>

#include "kernels/roofline/chains.h"
#include "kernels/roofline/roofline.h"

// The asm statements emit nothing: they make each sum look changed, or the compiler would share one product or
// one sum among all chains.
namespace edgekit {
namespace avx512_vnni {

int64_t int8_macs(int64_t rounds) noexcept {
  __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
  EK_CHAINS(__m512i);
#define EK_STEP(sum)                    \
  sum = _mm512_dpbusd_epi32(sum, a, b); \
  __asm__ volatile("" : "+v"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(64);
}

int64_t fp32_macs(int64_t rounds) noexcept {
  __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(0.25f);
  EK_CHAINS(__m512);
#define EK_STEP(sum)                \
  sum = _mm512_fmadd_ps(a, b, sum); \
  __asm__ volatile("" : "+v"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(16);
}

}  // namespace avx512_vnni
}  // namespace edgekit
