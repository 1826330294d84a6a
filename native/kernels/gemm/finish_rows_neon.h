// From the sums of a tile of 8 columns to rows of y. Only for ARM files.
#ifndef EDGEKIT_KERNELS_GEMM_FINISH_ROWS_NEON_H_
#define EDGEKIT_KERNELS_GEMM_FINISH_ROWS_NEON_H_

#include "kernels/gemm/gemm_q8.h"
#include "kernels/requantize/requantize_neon.h"

namespace edgekit::neon {
namespace {

// low: sums of columns 0-3 of rows first, first + 1, ..., high: of columns 4-7.
template <int kRows>
inline void finish_rows(const GemmQ8Rows& t, int64_t first, const int32x4_t (&low)[kRows],
                        const int32x4_t (&high)[kRows]) {
  const RequantizeQ8& p = *t.requantize;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const int8x8_t bytes = requantize_8(low[r], high[r], t.scale, p);
    finish_8(bytes, t.y[first + r] + t.channel, p.add ? t.residual[first + r] + t.channel : nullptr, 0, t.columns, p);
  }
}

}  // namespace
}  // namespace edgekit::neon

#endif  // EDGEKIT_KERNELS_GEMM_FINISH_ROWS_NEON_H_
