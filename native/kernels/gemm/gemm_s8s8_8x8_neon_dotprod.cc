// 8 rows x 8 columns with sdot by lane: a register of B holds 4 columns x 4 of depth, a register of A 16 of depth of
// one row. 16 accumulators, 8 of A and 2 to 4 of B fit the 32 registers.
#include <arm_neon.h>

#include "kernels/gemm/finish_rows_neon.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_rows.h"

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
inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first, Sums<kRows>& sums) {
  const int8_t* a[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    a[r] = reinterpret_cast<const int8_t*>(t.a[first + r]);
    sums.low[r] = vld1q_s32(t.bias);
    sums.high[r] = vld1q_s32(t.bias + 4);
  }
  const int8_t* b = t.b;
  int8x16_t rows[kRows];
  const int64_t* offset = t.offsets;
  const int64_t* end = t.offsets + 4 * t.quads;
  for (; offset != end; offset += 4, b += 128) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) rows[r] = vld1q_s8(a[r] + *offset);
    multiply_lane<kRows, 0>(sums, rows, b);
    multiply_lane<kRows, 1>(sums, rows, b + 32);
    multiply_lane<kRows, 2>(sums, rows, b + 64);
    multiply_lane<kRows, 3>(sums, rows, b + 96);
  }
  end = t.offsets + t.depth_groups;
  for (; offset != end; ++offset, b += 32) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      rows[r] = vreinterpretq_s8_s32(vld1q_dup_s32(reinterpret_cast<const int32_t*>(a[r] + *offset)));
    }
    multiply_lane<kRows, 0>(sums, rows, b);
  }
}

struct Tile {
  const GemmQ8Rows& t;

  template <int kRows>
  void run(int64_t first) const {
    Sums<kRows> sums;
    multiply<kRows>(t, first, sums);
    neon::finish_rows<kRows>(t, first, sums.low, sums.high);
  }
};

}  // namespace

void gemm_s8s8_8x8_neon_dotprod(const GemmQ8Rows& t) noexcept { sweep_rows<8>(Tile{t}, t.rows); }

}  // namespace edgekit::neon_dotprod
