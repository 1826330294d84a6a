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
inline constexpr int kMostBlockTiles = 16;    // tiles of rows that go through a panel together
inline constexpr int kMostBlockRows = kMostBlockTiles * kMostTileRows;

// What happens to results before they are stored: y = act(v * scale) + r, or act(v * scale + r).
struct GemmEpilogue {
  ActivationSpec act;  // has_vector_form()
  bool add_before_act;
  float scale = 1.0f;
};

// One tile of a product: sums[r][c] = init[r * init_step + c] + sum over k, ascending, of a[r][k] * b[k][c], each step
// one fused multiply-add. A row of a is `runs` runs of `depth` dense floats, a_run_step apart, the first at
// a[r] + a_offset; a row of b has nr floats, b_step apart. The sums go raw to `partial` ([rows][nr], dense) when that
// is not null, otherwise the first `columns` of each row through the epilogue to y[r].
struct GemmTile {
  const float* const* a;
  int64_t a_offset, runs, depth, a_run_step;
  const float* b;
  int64_t b_step;
  const float* init;
  int64_t init_step;
  int rows;  // 1 to mr
  int nr;    // the table's; the scalar table takes any
  int columns;
  float* partial;
  const GemmEpilogue* epilogue;
  float* const* y;
  const float* const* residual;  // rows beside y; null: none
};

// One run of output pixels of a depthwise convolution whose windows have the same taps inside the image.
struct DepthwiseRun {
  const float* x;  // first tap of the first pixel
  const float* w;  // weights of that tap; the next tap of a row is `channels` further
  const float* bias;
  const float* residual;  // null: none
  float* y;
  int64_t tap_row_step, tap_step;         // in x
  int64_t weight_row_step;                // in w
  int64_t x_step, residual_step, y_step;  // from one output pixel to the next
  int64_t tap_rows, tap_columns, pixels, channels;
};

// Kernels noexcept on raw pointers; no alignment needed; outputs overlap no input.
struct GemmF32Kernels {
  int nr;  // columns of a panel; 0: any
  int mr;  // rows of a tile
  void (*tile)(const GemmTile& tile) noexcept;
  void (*depthwise)(const GemmEpilogue& epilogue, const DepthwiseRun& run) noexcept;
};

// The table for `isa` if its panels are nr wide, otherwise the scalar one, which reads any packing.
const GemmF32Kernels& gemm_f32_kernels(Isa isa, int nr);

// The table for `isa`, for operands that this op packs itself.
const GemmF32Kernels& gemm_f32_kernels(Isa isa);

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
