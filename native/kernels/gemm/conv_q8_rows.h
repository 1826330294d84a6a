// The rows of a block: which of them are read where they stand in x, and which from packed copies.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_ROWS_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_ROWS_H_

#include <cstdint>

#include "kernels/gemm/conv_q8_source.h"

namespace edgekit {

// Per row: its A, its pixel of y and of the residual (undefined without one), both at channel 0.
struct RowPointers {
  const uint8_t** a;
  uint8_t** y;
  const uint8_t** residual;
};

// Rows of A, y and residual, direct ones from the front, packed ones from the back.
struct ConvQ8Rows {
  RowPointers at;   // room for `most` rows
  uint8_t* packed;  // room for `most_packed` of them
  int64_t most;
  int64_t most_packed;
  int64_t direct_count;
  int64_t packed_count;  // the last ones of `at`
};

struct ConvQ8Images {
  const ConvQ8Source& source;
  const TensorView& y;
  const TensorView* residual;      // null: none
  Span inner_rows, inner_columns;  // empty: every row is packed
  int64_t reach;                   // bytes that a direct row reads from its start on
};

// Output rows of one group, as many as there is room for; returns how many.
int64_t provide_rows(const ConvQ8Images& images, Span rows, int64_t group, ConvQ8Rows& to);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_ROWS_H_
