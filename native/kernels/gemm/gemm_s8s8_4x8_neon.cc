// 4 rows x 8 columns for CPUs without dot products (Cortex-A72). smull gives the 16-bit products of a pair of depths of
// four columns, sadalp adds each pair into 32 bits. Products are never added in 16 bits: -128 * -128 twice would
// overflow.
#include <arm_neon.h>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/pack_bytes.h"
#include "kernels/gemm/pack_rows.h"
#include "kernels/requantize/requantize_neon.h"

namespace edgekit::neon {
namespace {

template <int kRows>
inline __attribute__((always_inline)) void multiply(const GemmQ8Tile& t, int32x4_t (&low)[kRows],
                                                    int32x4_t (&high)[kRows]) {
  const int8_t* a[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    a[r] = static_cast<const int8_t*>(t.a[r]);
    low[r] = vld1q_s32(t.bias);
    high[r] = vld1q_s32(t.bias + 4);
  }
  const int8_t* b = t.b;
  for (int64_t group = 0; group < t.depth_groups; ++group, b += 16) {
    const int8x8_t b_low = vld1_s8(b);
    const int8x8_t b_high = vld1_s8(b + 8);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      // The pair of this row in all four places.
      const int8x8_t pair = vreinterpret_s8_s16(vld1_dup_s16(reinterpret_cast<const int16_t*>(a[r] + 2 * group)));
      low[r] = vpadalq_s16(low[r], vmull_s8(pair, b_low));
      high[r] = vpadalq_s16(high[r], vmull_s8(pair, b_high));
    }
  }
}

template <int kRows>
void tile(const GemmQ8Tile& t) {
  int32x4_t low[kRows], high[kRows];
  multiply<kRows>(t, low, high);
  const RequantizeQ8& p = *t.requantize;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const int8x8_t bytes = requantize_8(low[r], high[r], t.scale, p);
    finish_8(bytes, t.y[r] + t.channel, p.add ? t.residual[r] + t.channel : nullptr, 0, t.columns, p);
  }
}

}  // namespace

void gemm_s8s8_4x8_neon(const GemmQ8Tile& t) noexcept {
  switch (t.rows) {
    case 1:
      return tile<1>(t);
    case 2:
      return tile<2>(t);
    case 3:
      return tile<3>(t);
    default:
      return tile<4>(t);
  }
}

void pack_rows_gemm_s8s8_4x8_neon(const ConvQ8Source& source, int64_t group, int64_t first, int64_t count,
                                  void* out) noexcept {
  pack_rows<ByteCopy>(source, group, first, count, out);
}

}  // namespace edgekit::neon
