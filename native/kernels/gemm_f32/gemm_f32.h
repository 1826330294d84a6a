// Float products by tiles, for convolution, matmul and LSTM, and depthwise convolution.
#ifndef EDGEKIT_KERNELS_GEMM_F32_GEMM_F32_H_
#define EDGEKIT_KERNELS_GEMM_F32_GEMM_F32_H_

#include <cstdint>

#include "kernels/elementwise/elementwise.h"
#include "kernels/variant.h"
#include "program_schema.h"

namespace edgekit {

inline constexpr int kMostTileRows = 12;      // the greatest mr of any table
inline constexpr int kMostPanelColumns = 32;  // the greatest nr
inline constexpr int kMostBlockTiles = 32;    // tiles of rows that go through a panel together
inline constexpr int kMostBlockRows = kMostBlockTiles * kMostTileRows;

// What happens to results before they are stored: y = act(v * scale) + r, or act(v * scale + r).
struct GemmEpilogue {
  ActivationSpec act;  // has_vector_form()
  bool add_before_act;
  float scale;
  bool clamps;      // act is min(max(v, low), high), which kernels do in registers
  float low, high;  // may be infinite
};
GemmEpilogue gemm_epilogue(const ActivationSpec& act, bool add_before_act, float scale = 1.0f);

// From one part of a row of a to the next.
struct RowSteps {
  int64_t line, run;
};

// A block of rows times one panel: sums[r][c] = init[r * init_step + c] + sum over k, ascending, of a[r][k] * b[k][c],
// each step one fused multiply-add. Rows go in tiles of tile_rows. A row of a is `lines` lines of `runs` runs of
// `depth` dense floats: run j of line i starts at a[r] + (first_line + i) * steps.line + j * steps.run + offset, with
// the steps of the row's tile. A row of b has nr floats, b_step apart. The sums go raw to `partial` ([rows][nr], dense)
// when that is not null, otherwise the first `columns` of each row through the epilogue to y[r] + column.
struct GemmBlock {
  const float* const* a;
  const RowSteps* steps;  // by tile
  int64_t first_line, offset, lines, runs, depth;
  const float* b;
  int64_t b_step;
  const float* init;
  int64_t init_step;
  int64_t rows;
  int tile_rows;  // 1 to mr
  int nr;         // the table's; the scalar table takes any
  int columns;
  float* partial;
  const GemmEpilogue* epilogue;
  float* const* y;
  const float* const* residual;  // rows beside y; null: none
  int64_t column;
};

// The taps of a window that lie inside the image, at one output position along one axis.
struct InsideTaps {
  int32_t begin, count;
};

// Rows [first_row, first_row + rows) of one image of a depthwise convolution. Positions in elements.
struct DepthwiseBand {
  const float *x, *residual;  // pixel (0, 0); residual null: none
  float* y;
  const float *w, *bias;                     // w [kernel_h][kernel_w][channels]
  const InsideTaps *row_taps, *column_taps;  // by output row and column
  int64_t x_origin;                          // of the window of output (0, 0), from x
  int64_t x_row, x_column;                   // from one output to the next, in x
  int64_t tap_row, tap_column;               // from one tap to the next, in x
  int64_t y_row, y_column, residual_row, residual_column;
  int64_t first_row, rows, columns;
  int64_t whole_begin, whole_end;  // columns whose windows have all taps inside
  int64_t kernel_w, channels;
};

// Kernels noexcept on raw pointers; no alignment needed; outputs overlap no input.
struct GemmF32Kernels {
  int nr;  // columns of a panel; 0: any
  int mr;  // most rows of a tile
  void (*block)(const GemmBlock& block) noexcept;
  void (*depthwise)(const GemmEpilogue& epilogue, const DepthwiseBand& band) noexcept;
};

// The table for `isa` if its panels are nr wide, otherwise the scalar one, which reads any packing.
const GemmF32Kernels& gemm_f32_kernels(Isa isa, int nr);

// The table for `isa`, for operands that this op packs itself.
const GemmF32Kernels& gemm_f32_kernels(Isa isa);
const char* gemm_f32_kernel_space(Isa isa);  // the namespace that the table is of

// What a convolution may fuse.
Status expect_fused_activation(const char* name, int32_t value);

#define EK_KERNELS(isa, space)              \
  namespace space {                         \
  const GemmF32Kernels& gemm_f32_kernels(); \
  }
#include "kernels/gemm_f32/kernels.inc"
#undef EK_KERNELS

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_F32_GEMM_F32_H_
