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

// One tile of a product: out[r][c] = init[c] + sum over k, ascending, of a[r][k] * b[k * b_step + c], each step one
// fused multiply-add. out is [rows][nr], dense.
struct GemmTile {
  const float* const* a;  // `rows` pointers to `depth` dense floats
  const float* b;         // each row nr floats
  int64_t b_step;
  const float* init;  // nr floats
  int64_t depth;
  int rows;  // 1 to mr
  int nr;    // the table's; the scalar table takes any
};

// What happens to `columns` results of a row before they are stored: y = act(v) + r, or act(v + r).
struct GemmEpilogue {
  ActivationSpec act;  // has_vector_form()
  bool add_before_act;
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
  void (*tile)(const GemmTile& tile, float* out) noexcept;
  // y[i] = epilogue(v[i], residual[i]) for i < columns; residual may be null.
  void (*finish)(const GemmEpilogue& epilogue, const float* v, const float* residual, float* y, int columns) noexcept;
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
