// Element-by-element kernels on INT8 rows. One manifest (kernels.inc) names them all.
#ifndef EDGEKIT_KERNELS_ELEMENTWISE_Q8_ELEMENTWISE_Q8_H_
#define EDGEKIT_KERNELS_ELEMENTWISE_Q8_ELEMENTWISE_Q8_H_

#include <cstddef>
#include <cstdint>

#include "kernels/requantize/requantize_q8.h"

namespace edgekit {

// A row of n elements; strides in elements (bytes). y may equal an input with the same stride; no other overlap.
struct LutQ8Row {
  const uint8_t* x;
  int64_t x_stride;
  uint8_t* y;
  int64_t y_stride;
  int64_t n;
  const uint8_t* lut;  // 256 bytes
  bool is_signed;      // index x + 128
};

struct BinaryQ8Row {
  const uint8_t* a;
  int64_t a_stride;
  const uint8_t* b;
  int64_t b_stride;
  uint8_t* y;
  int64_t y_stride;
  int64_t n;
  BinaryKind kind;  // add, sub, mul
  AddQ8 params;     // lhs is a, rhs is b; mul: lhs_scale only
  bool is_signed;
};

struct ElementwiseQ8Kernels {
  const char* name;
  Isa isa;
  double element_ns;  // rough cost of one element, to decide on threads
  void (*lut_row)(const LutQ8Row& row) noexcept;
  void (*binary_row)(const BinaryQ8Row& row) noexcept;
};

struct ElementwiseQ8Table {
  const ElementwiseQ8Kernels* begin_;
  const ElementwiseQ8Kernels* end_;
  const ElementwiseQ8Kernels* begin() const { return begin_; }
  const ElementwiseQ8Kernels* end() const { return end_; }
};

// Every set of kernels of this build, whether or not this CPU can run it.
ElementwiseQ8Table elementwise_q8_kernels();
const ElementwiseQ8Kernels& select_elementwise_q8(Isa isa);

// One element of binary_q8, on values.
inline int32_t binary_q8_value(BinaryKind kind, const AddQ8& p, int32_t a, int32_t b) {
  if (kind == BinaryKind::kAdd) return add_q8(p, a, b);
  const float lhs = static_cast<float>(a - p.lhs_zero);
  const float rhs = static_cast<float>(b - p.rhs_zero);
  const float v = kind == BinaryKind::kMul ? lhs * rhs * p.lhs_scale : lhs * p.lhs_scale - rhs * p.rhs_scale;
  return round_half_even(clamp_float(v, p.v_min, p.v_max)) + p.zero;
}

#define EK_ELEMENTWISE_Q8(space, isa, element_ns)      \
  namespace space {                                    \
  void lut_q8_row(const LutQ8Row& row) noexcept;       \
  void binary_q8_row(const BinaryQ8Row& row) noexcept; \
  }
#include "kernels/elementwise_q8/kernels.inc"
#undef EK_ELEMENTWISE_Q8

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_ELEMENTWISE_Q8_ELEMENTWISE_Q8_H_
