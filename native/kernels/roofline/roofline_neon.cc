#include <arm_neon.h>

#include "kernels/roofline/chains.h"
#include "kernels/roofline/roofline.h"

// The asm statements emit nothing: they make each sum and the factor a look changed, or the compiler would share one
// product or one sum among all chains.
namespace edgekit {
namespace neon {

// smull and sadalp: the pair that sums exactly without the dot product.
int64_t int8_macs(int64_t rounds) noexcept {
  int8x8_t a = vdup_n_s8(3), b = vdup_n_s8(5);
  EK_CHAINS(int32x4_t);
#define EK_STEP(sum)                      \
  sum = vpadalq_s16(sum, vmull_s8(a, b)); \
  __asm__ volatile("" : "+w"(a), "+w"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(8);
}

int64_t fp32_macs(int64_t rounds) noexcept {
  float32x4_t a = vdupq_n_f32(0.5f), b = vdupq_n_f32(0.25f);
  EK_CHAINS(float32x4_t);
#define EK_STEP(sum)          \
  sum = vfmaq_f32(sum, a, b); \
  __asm__ volatile("" : "+w"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(4);
}

}  // namespace neon
}  // namespace edgekit
