// Resizing kernels: one output pixel of a bilinear resize, all channels.
#ifndef EDGEKIT_KERNELS_RESIZE_RESIZE_H_
#define EDGEKIT_KERNELS_RESIZE_RESIZE_H_

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/variant.h"

namespace edgekit {

// The columns of one output row: output ox reads the pixels x0[ox] and x1[ox], offsets in elements, weight wx[ox].
struct LinearRow {
  const int32_t *x0, *x1;
  const float* wx;
  int64_t pixels;
  int64_t x_step;    // elements from one input pixel to the next
  int64_t y_step;    // likewise for the output
  int64_t channels;  // dense
  float wy;
};

struct ResizeQuantization {
  int32_t x_zero, y_zero;
  float ratio;
};

// top, bottom: the two input rows; y: the output row, overlapping neither. No alignment needed.
struct ResizeKernels {
  void (*linear_f32)(const LinearRow& row, const float* top, const float* bottom, float* y) noexcept;
  void (*linear_u8)(const LinearRow& row, const uint8_t* top, const uint8_t* bottom, uint8_t* y,
                    const ResizeQuantization& quantization) noexcept;
  void (*linear_s8)(const LinearRow& row, const int8_t* top, const int8_t* bottom, int8_t* y,
                    const ResizeQuantization& quantization) noexcept;
};

const ResizeKernels& resize_kernels(Isa isa);
const char* resize_kernel_space(Isa isa);  // the namespace that the table is of

// That `table` is a constant of `count` indices, all inside [0, limit): read at load, trusted when the op runs.
Status expect_index_table(const char* name, const TensorView& table, int32_t count, int32_t limit);

#define EK_KERNELS(isa, space)           \
  namespace space {                      \
  const ResizeKernels& resize_kernels(); \
  }
#include "kernels/resize/kernels.inc"
#undef EK_KERNELS

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_RESIZE_RESIZE_H_
