// Elementwise float kernels: activations and the arithmetic of the binary op, on dense runs.
#ifndef EDGEKIT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define EDGEKIT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

#include "core/status.h"
#include "kernels/variant.h"
#include "program_schema.h"

namespace edgekit {

// An activation with its constants, as the attributes of many ops name it.
struct ActivationSpec {
  Activation kind = Activation::kNone;
  float alpha = 0.0f;
  float beta = 0.0f;
};

// Kernels on dense runs of n floats, n >= 0, no alignment needed. y may equal an input; otherwise no overlap.
struct ElementwiseKernels {
  // Any activation with has_vector_form().
  void (*activate)(const ActivationSpec& spec, const float* x, float* y, int64_t n) noexcept;
  // Any kind with has_vector_form().
  void (*binary)(BinaryKind kind, const float* a, const float* b, float* y, int64_t n) noexcept;
};

// True for the activations that the ISA tables compute. The rest (sin, cos, tan and their like) go through double
// precision of the C library, one element at a time, the same for every ISA.
bool has_vector_form(Activation kind);
bool has_vector_form(BinaryKind kind);  // add, sub, mul, div, min, max, prelu

const ElementwiseKernels& elementwise_kernels(Isa isa);
const char* elementwise_kernel_space(Isa isa);  // the namespace that the table is of

// Any float activation on a dense run; y may equal x.
void activate(const ElementwiseKernels& kernels, const ActivationSpec& spec, const float* x, float* y,
              int64_t n) noexcept;

// That `value` names an activation on floats: everything in the schema but logical_not.
Status expect_float_activation(const char* name, int32_t value);

#define EK_KERNELS(isa, space)                     \
  namespace space {                                \
  const ElementwiseKernels& elementwise_kernels(); \
  }
#include "kernels/elementwise/kernels.inc"
#undef EK_KERNELS

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
