// Softmax and layer normalisation kernels on dense lines.
#ifndef EDGEKIT_KERNELS_SOFTMAX_SOFTMAX_H_
#define EDGEKIT_KERNELS_SOFTMAX_SOFTMAX_H_

#include <cstdint>

#include "kernels/variant.h"
#include "program_schema.h"

namespace edgekit {

// Lines of `length` dense floats; line i starts at i * x_step, i * y_step.
struct SoftmaxLines {
  int64_t lines, length;
  int64_t x_step, y_step;
  bool log;
};

struct LayerNormSpec {
  int64_t length;
  const float *gamma, *beta;  // `length` dense floats, or null
  float epsilon;
  bool rms;
};

// No alignment needed; y overlaps no input.
struct SoftmaxKernels {
  int lanes;  // softmax_columns does multiples of it
  void (*softmax_lines)(const SoftmaxLines& lines, const float* x, float* y) noexcept;
  // The same on adjacent lines, a multiple of `lanes`: here x_step and y_step lead from one element of a line to the
  // next.
  void (*softmax_columns)(const SoftmaxLines& columns, const float* x, float* y) noexcept;
  void (*layer_norm)(const LayerNormSpec& spec, const float* x, float* y) noexcept;
};

const SoftmaxKernels& softmax_kernels(Isa isa);
const char* softmax_kernel_space(Isa isa);  // the namespace that the table is of

#define EK_KERNELS(isa, space)             \
  namespace space {                        \
  const SoftmaxKernels& softmax_kernels(); \
  }
#include "kernels/softmax/kernels.inc"
#undef EK_KERNELS

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_SOFTMAX_SOFTMAX_H_
