// 8 rows x 8 columns with smmla: two rows times two columns, 8 deep. A register of A holds 8 of depth of two rows, one
// of B two columns of a depth group. 16 accumulators, 8 of B and 4 of A fit the 32 registers.
#include <arm_neon.h>

#include "kernels/gemm/finish_rows_neon.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_rows.h"

namespace edgekit::neon_i8mm {
namespace {

constexpr int64_t kStep = 64;  // bytes of a depth group of B: 8 columns, 8 deep
constexpr int kColumnPairs = 4;

// Two rows times two columns. In assembly, since GCC 12 otherwise copies the sums until some live in memory.
inline __attribute__((always_inline)) void multiply_add(int32x4_t& sums, int8x16_t rows, int8x16_t columns) {
  asm("smmla %[sums].4s, %[rows].16b, %[columns].16b" : [sums] "+w"(sums) : [rows] "w"(rows), [columns] "w"(columns));
}

template <int kRows>
struct Product {
  static constexpr int kPairs = (kRows + 1) / 2;

  const int8_t* a[2 * kPairs];  // of an odd number of rows the last twice
  // Of rows 2p and 2p + 1 and columns 2q and 2q + 1, row by row.
  int32x4_t sums[kPairs][kColumnPairs];

  inline __attribute__((always_inline)) Product(const GemmQ8Rows& t, int64_t first) {
#pragma GCC unroll 8
    for (int r = 0; r < 2 * kPairs; ++r)
      a[r] = reinterpret_cast<const int8_t*>(t.a[first + (r < kRows ? r : kRows - 1)]);
#pragma GCC unroll 4
    for (int q = 0; q < kColumnPairs; ++q) {
      const int32x2_t bias = vld1_s32(t.bias + 2 * q);
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) sums[p][q] = vcombine_s32(bias, bias);
    }
  }

  struct Columns {
    int8x16_t pairs[kColumnPairs];

    inline __attribute__((always_inline)) explicit Columns(const int8_t* b) {
#pragma GCC unroll 4
      for (int q = 0; q < kColumnPairs; ++q) pairs[q] = vld1q_s8(b + 16 * q);
    }
  };

  inline __attribute__((always_inline)) void multiply_pair(int p, int8x16_t rows, const Columns& columns) {
#pragma GCC unroll 4
    for (int q = 0; q < kColumnPairs; ++q) multiply_add(sums[p][q], rows, columns.pairs[q]);
  }

  // Two depth groups, one behind the other in every row.
  inline __attribute__((always_inline)) void multiply_two(int64_t offset, const int8_t* b) {
    const Columns near(b), far(b + kStep);
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const int64x2_t upper = vreinterpretq_s64_s8(vld1q_s8(a[2 * p] + offset));
      const int64x2_t lower = vreinterpretq_s64_s8(vld1q_s8(a[2 * p + 1] + offset));
      multiply_pair(p, vreinterpretq_s8_s64(vzip1q_s64(upper, lower)), near);
      multiply_pair(p, vreinterpretq_s8_s64(vzip2q_s64(upper, lower)), far);
    }
  }

  inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t) {
    const int8_t* b = t.b;
    const int64_t* offset = t.offsets;
    const int64_t* end = t.offsets + 4 * t.quads;
    for (; offset != end; offset += 2, b += 2 * kStep) multiply_two(*offset, b);
    end = t.offsets + t.depth_groups;
    for (; offset != end; ++offset, b += kStep) {
      const Columns columns(b);
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        multiply_pair(p, vcombine_s8(vld1_s8(a[2 * p] + *offset), vld1_s8(a[2 * p + 1] + *offset)), columns);
      }
    }
  }

  // Columns [4 half, 4 half + 4) of a row.
  inline __attribute__((always_inline)) int32x4_t row(int r, int half) const {
    const int64x2_t left = vreinterpretq_s64_s32(sums[r / 2][2 * half]);
    const int64x2_t right = vreinterpretq_s64_s32(sums[r / 2][2 * half + 1]);
    return vreinterpretq_s32_s64(r % 2 == 0 ? vzip1q_s64(left, right) : vzip2q_s64(left, right));
  }
};

struct Tile {
  const GemmQ8Rows& t;

  template <int kRows>
  void run(int64_t first) const {
    Product<kRows> product(t, first);
    product.multiply(t);
    int32x4_t low[kRows], high[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      low[r] = product.row(r, 0);
      high[r] = product.row(r, 1);
    }
    neon::finish_rows<kRows>(t, first, low, high);
  }
};

}  // namespace

void gemm_s8s8_8x8_neon_i8mm(const GemmQ8Rows& t) noexcept { sweep_rows<8>(Tile{t}, t.rows); }

}  // namespace edgekit::neon_i8mm
