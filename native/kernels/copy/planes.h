// Transposed operands as planes: x dense along one loop, y along another.
#ifndef EDGEKIT_KERNELS_COPY_PLANES_H_
#define EDGEKIT_KERNELS_COPY_PLANES_H_

#include <algorithm>
#include <cstdint>

#include "kernels/loop_nest.h"

namespace edgekit {

// The loop along which x is dense, other than the innermost, of a nest that is dense in y along the innermost; -1:
// none.
inline int plane_loop(const LoopNest<2>& nest) {
  if (nest.run_stride(1) != 1 || nest.run_stride(0) == 1) return -1;
  for (int i = 0; i + 1 < nest.rank; ++i) {
    if (nest.strides[0][i] == 1) return i;
  }
  return -1;
}

// A piece of a plane: x[i * x_step + j] and y[j * y_step + i] for i < rows, j < columns. Positions in elements.
struct PlanePiece {
  int64_t x_at, x_step, y_at, y_step, rows, columns;
};

// Steps along the longer side of a piece: multiples of 64 keep cache lines whole, and narrow planes have longer pieces.
inline int64_t plane_piece_length(int64_t shorter) {
  constexpr int64_t kLeast = 64, kMost = 1024, kElements = 4096;
  return std::min(kMost, std::max(kLeast, kElements / shorter / kLeast * kLeast));
}

// Calls body(const PlanePiece&) for all planes of (loop plane_loop(nest), innermost loop), cut along their longer side.
template <typename Body>
void parallel_planes(RunContext& context, const LoopNest<2>& nest, double element_ns, Body&& body) {
  const int dense = plane_loop(nest);
  LoopNest<2> outer;
  for (int i = 0; i + 1 < nest.rank; ++i) {
    const int64_t strides[2] = {nest.strides[0][i], nest.strides[1][i]};
    if (i != dense) append_loop(outer, nest.dims[i], strides);
  }
  const int64_t planes = outer.run_count() * outer.run_length();
  LoopNest<2> each = outer;  // one run of one plane for each step
  each.dims[each.rank] = 1;
  each.strides[0][each.rank] = each.strides[1][each.rank] = 0;
  ++each.rank;

  const int64_t rows = nest.run_length(), columns = nest.dims[dense];
  const int64_t x_step = nest.run_stride(0), y_step = nest.strides[1][dense];
  const bool by_columns = columns >= rows;
  const int64_t longer = std::max(rows, columns), shorter = std::min(rows, columns);
  const int64_t length = plane_piece_length(shorter), pieces = (longer + length - 1) / length;
  const double piece_ns = static_cast<double>(length * shorter * planes) * element_ns;
  parallel_for(context, pieces, piece_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * length, count = std::min(length, longer - first);
      const int64_t x_first = first * (by_columns ? 1 : x_step), y_first = first * (by_columns ? y_step : 1);
      for_each_run(each, 0, planes, [&](const int64_t(&at)[2]) {
        body(PlanePiece{at[0] + x_first, x_step, at[1] + y_first, y_step, by_columns ? rows : count,
                        by_columns ? count : columns});
      });
    }
  });
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_COPY_PLANES_H_
