// Walks a kernel's tile over rows. Tile is a type of the kernel's own file, with `void run<kRows>(first)`, so that each
// instruction set keeps its own copy of this.
#ifndef EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_
#define EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_

#include <cstdint>

namespace edgekit {

// The last rows, 1 to kMost of them.
template <int kMost, typename Tile>
inline void run_last_rows(const Tile& tile, int64_t first, int64_t rows) {
  if (rows - first == kMost) return tile.template run<kMost>(first);
  if constexpr (kMost > 1) run_last_rows<kMost - 1>(tile, first, rows);
}

template <int kMostRows, typename Tile>
inline void sweep_rows(const Tile& tile, int64_t rows) {
  int64_t first = 0;
  for (; first + kMostRows <= rows; first += kMostRows) tile.template run<kMostRows>(first);
  if (first < rows) run_last_rows<kMostRows - 1>(tile, first, rows);
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_
