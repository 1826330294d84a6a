// Walks a kernel's tile over rows. Tile is a type of the kernel's own file, with `void run<kRows>(first)`, so that each
// instruction set keeps its own copy of this.
#ifndef EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_
#define EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_

#include <cstdint>

namespace edgekit {

// A tile of 1 to kMost rows.
template <int kMost, typename Tile>
inline void run_rows(const Tile& tile, int64_t first, int64_t rows) {
  if (rows == kMost) return tile.template run<kMost>(first);
  if constexpr (kMost > 1) run_rows<kMost - 1>(tile, first, rows);
}

// Full tiles, then what is left. The last two share their rows where the last would have few: each reads all of B.
template <int kMostRows, typename Tile>
inline void sweep_rows(const Tile& tile, int64_t rows) {
  int64_t first = 0;
  for (; first + kMostRows + kMostRows / 2 < rows; first += kMostRows) tile.template run<kMostRows>(first);
  const int64_t left = rows - first;
  const int64_t part = left > kMostRows ? (left + 1) / 2 : left;
  run_rows<kMostRows>(tile, first, part);
  if (part < left) run_rows<kMostRows>(tile, first + part, left - part);
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_SWEEP_ROWS_H_
