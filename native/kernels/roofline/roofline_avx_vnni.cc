#include "kernels/roofline/chains.h"
#include "kernels/roofline/roofline.h"
#include "kernels/simd/dot_avx_vnni.h"

namespace edgekit {
namespace avx_vnni {

int64_t int8_macs(int64_t rounds) noexcept {
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  EK_CHAINS(__m256i);
#define EK_STEP(sum)  \
  dot_add(sum, a, b); \
  __asm__ volatile("" : "+x"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(32);
}

// These CPUs have nothing beyond AVX2 for floats.
int64_t fp32_macs(int64_t rounds) noexcept { return avx2::fp32_macs(rounds); }

}  // namespace avx_vnni
}  // namespace edgekit
