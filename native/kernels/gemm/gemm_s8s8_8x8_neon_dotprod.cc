// 8 rows x 8 columns with sdot by lane: a register of B holds 4 columns x 4 of depth, a register of A 16 of depth of
// one row. 16 accumulators, 8 of A and 2 to 4 of B fit the 32 registers.
#include <arm_neon.h>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/pack_bytes.h"
#include "kernels/gemm/pack_rows.h"
#include "kernels/requantize/requantize_neon.h"

namespace edgekit::neon_dotprod {
namespace {

template <int kRows>
struct Sums {
  int32x4_t low[kRows], high[kRows];
};

// Depth groups of 4, one of the four in each lane of A.
template <int kRows, int kLane>
inline __attribute__((always_inline)) void multiply_lane(Sums<kRows>& sums, const int8x16_t (&a)[kRows],
                                                         const int8_t* b) {
  const int8x16_t low = vld1q_s8(b);
  const int8x16_t high = vld1q_s8(b + 16);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    sums.low[r] = vdotq_laneq_s32(sums.low[r], low, a[r], kLane);
    sums.high[r] = vdotq_laneq_s32(sums.high[r], high, a[r], kLane);
  }
}

template <int kRows>
inline __attribute__((always_inline)) void multiply(const GemmQ8Tile& t, Sums<kRows>& sums) {
  const int8_t* a[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    a[r] = static_cast<const int8_t*>(t.a[r]);
    sums.low[r] = vld1q_s32(t.bias);
    sums.high[r] = vld1q_s32(t.bias + 4);
  }
  const int8_t* b = t.b;
  int8x16_t rows[kRows];
  int64_t group = 0;
  for (; group + 4 <= t.depth_groups; group += 4, b += 128) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) rows[r] = vld1q_s8(a[r] + 4 * group);
    multiply_lane<kRows, 0>(sums, rows, b);
    multiply_lane<kRows, 1>(sums, rows, b + 32);
    multiply_lane<kRows, 2>(sums, rows, b + 64);
    multiply_lane<kRows, 3>(sums, rows, b + 96);
  }
  for (; group < t.depth_groups; ++group, b += 32) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      rows[r] = vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const int32_t*>(a[r] + 4 * group)));
    }
    multiply_lane<kRows, 0>(sums, rows, b);
  }
}

template <int kRows>
void tile(const GemmQ8Tile& t) {
  Sums<kRows> sums;
  multiply<kRows>(t, sums);
  const RequantizeQ8& p = *t.requantize;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const int8x8_t bytes = neon::requantize_8(sums.low[r], sums.high[r], t.scale, p);
    neon::finish_8(bytes, t.y[r] + t.channel, p.add ? t.residual[r] + t.channel : nullptr, 0, t.columns, p);
  }
}

}  // namespace

void gemm_s8s8_8x8_neon_dotprod(const GemmQ8Tile& t) noexcept {
  switch (t.rows) {
    case 1:
      return tile<1>(t);
    case 2:
      return tile<2>(t);
    case 3:
      return tile<3>(t);
    case 4:
      return tile<4>(t);
    case 5:
      return tile<5>(t);
    case 6:
      return tile<6>(t);
    case 7:
      return tile<7>(t);
    default:
      return tile<8>(t);
  }
}

void pack_rows_gemm_s8s8_8x8_neon_dotprod(const ConvQ8Source& source, int64_t group, int64_t first, int64_t count,
                                          void* out) noexcept {
  pack_rows<ByteCopy>(source, group, first, count, out);
}

}  // namespace edgekit::neon_dotprod
