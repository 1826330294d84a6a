// Pooling kernels: one output pixel, all channels.
#ifndef EDGEKIT_KERNELS_POOL_POOL_H_
#define EDGEKIT_KERNELS_POOL_POOL_H_

#include <cstdint>

#include "kernels/variant.h"
#include "program_schema.h"

namespace edgekit {

// The taps of one window that lie inside the image: tap (r, c) is at x + r * row_step + c * column_step, in elements.
struct PoolWindow {
  int64_t row_step, column_step;
  int64_t rows, columns;  // both >= 1
  int64_t channels;       // dense
};

// How a q8 average becomes an output: sat(rne(acc / count * ratio) + y_zero), acc the sum of x - x_zero.
struct PoolQuantization {
  int32_t x_zero, y_zero;
  float ratio;
};

// x: of the first tap; y: `channels` dense outputs, not overlapping x. No alignment needed.
struct PoolKernels {
  void (*max_f32)(const PoolWindow& window, const float* x, float* y) noexcept;
  void (*max_u8)(const PoolWindow& window, const uint8_t* x, uint8_t* y) noexcept;
  void (*max_s8)(const PoolWindow& window, const uint8_t* x, uint8_t* y) noexcept;  // bits of int8_t
  void (*average_f32)(const PoolWindow& window, const float* x, float* y, float count) noexcept;
  void (*average_u8)(const PoolWindow& window, const uint8_t* x, uint8_t* y, float count,
                     const PoolQuantization& quantization) noexcept;
  void (*average_s8)(const PoolWindow& window, const int8_t* x, int8_t* y, float count,
                     const PoolQuantization& quantization) noexcept;
};

const PoolKernels& pool_kernels(Isa isa);
const char* pool_kernel_space(Isa isa);  // the namespace that the table is of

#define EK_KERNELS(isa, space)       \
  namespace space {                  \
  const PoolKernels& pool_kernels(); \
  }
#include "kernels/pool/kernels.inc"
#undef EK_KERNELS

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_POOL_POOL_H_
