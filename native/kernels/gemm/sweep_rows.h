// Walks a kernel's tile over rows. Tile is a type of the kernel's own file, with `static void run<kRows>(rows, first)`,
// so that each instruction set keeps its own copy of this.
#ifndef EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_
#define EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_

#include "kernels/gemm/gemm_q8.h"

namespace edgekit {

// The last rows, 1 to kMost of them.
template <typename Tile, int kMost>
inline void run_last_rows(const GemmQ8Rows& t, int64_t first) {
  if (t.rows - first == kMost) return Tile::template run<kMost>(t, first);
  if constexpr (kMost > 1) run_last_rows<Tile, kMost - 1>(t, first);
}

template <typename Tile, int kMostRows>
inline void sweep_rows(const GemmQ8Rows& t) {
  int64_t first = 0;
  for (; first + kMostRows <= t.rows; first += kMostRows) Tile::template run<kMostRows>(t, first);
  if (first < t.rows) run_last_rows<Tile, kMostRows - 1>(t, first);
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_
