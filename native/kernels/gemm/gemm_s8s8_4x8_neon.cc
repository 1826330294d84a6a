// 4 rows x 8 columns for CPUs without dot products (Cortex-A72). smull gives the 16-bit products of a pair of depths of
// four columns, sadalp adds each pair into 32 bits. Products are never added in 16 bits: -128 * -128 twice would
// overflow.
#include <arm_neon.h>

#include "kernels/gemm/finish_rows_neon.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_rows.h"

namespace edgekit::neon {
namespace {

template <int kRows>
inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first, int32x4_t (&low)[kRows],
                                                    int32x4_t (&high)[kRows]) {
  const int8_t* a[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    a[r] = reinterpret_cast<const int8_t*>(t.a[first + r]);
    low[r] = vld1q_s32(t.bias);
    high[r] = vld1q_s32(t.bias + 4);
  }
  const int8_t* b = t.b;
  const int64_t* end = t.offsets + t.depth_groups;
  for (const int64_t* offset = t.offsets; offset != end; ++offset, b += 16) {
    const int8x8_t b_low = vld1_s8(b);
    const int8x8_t b_high = vld1_s8(b + 8);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      // The pair of this row in all four places.
      const int8x8_t pair = vreinterpret_s8_s16(vld1_dup_s16(reinterpret_cast<const int16_t*>(a[r] + *offset)));
      low[r] = vpadalq_s16(low[r], vmull_s8(pair, b_low));
      high[r] = vpadalq_s16(high[r], vmull_s8(pair, b_high));
    }
  }
}

struct Tile {
  const GemmQ8Rows& t;

  template <int kRows>
  void run(int64_t first) const {
    int32x4_t low[kRows], high[kRows];
    multiply<kRows>(t, first, low, high);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) asm("" : "+w"(low[r]), "+w"(high[r]));  // the epilogue may spill them, not the loop
    finish_rows<kRows>(t, first, low, high);
  }
};

}  // namespace

void gemm_s8s8_4x8_neon(const GemmQ8Rows& t) noexcept { sweep_rows<4>(Tile{t}, t.rows); }

}  // namespace edgekit::neon
