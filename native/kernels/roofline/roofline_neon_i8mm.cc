#include <arm_neon.h>

#include "kernels/roofline/chains.h"
#include "kernels/roofline/roofline.h"

// The asm statements emit nothing: they make each sum look changed, or the compiler would share one product or
// one sum among all chains.
namespace edgekit {
namespace neon_i8mm {

int64_t int8_macs(int64_t rounds) noexcept {
  int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(5);
  EK_CHAINS(int32x4_t);
#define EK_STEP(sum)           \
  sum = vmmlaq_s32(sum, a, b); \
  __asm__ volatile("" : "+w"(sum));
  for (int64_t round = 0; round < rounds; ++round) {
    EK_EACH_CHAIN(EK_STEP)
  }
#undef EK_STEP
  return rounds * EK_CHAIN_MACS(32);
}

// The products of INT8 matrices change nothing for float.
int64_t fp32_macs(int64_t rounds) noexcept { return neon::fp32_macs(rounds); }

}  // namespace neon_i8mm
}  // namespace edgekit
