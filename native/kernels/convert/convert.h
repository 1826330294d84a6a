// Row kernels of `convert`: quantize and dequantize, and what makes pixels of three rows. One manifest (kernels.inc)
// names them all. Requantizing q8 to q8 is a table of 256 values (elementwise_q8), and plain casts are not worth a
// vector form.
#ifndef EDGEKIT_KERNELS_CONVERT_CONVERT_H_
#define EDGEKIT_KERNELS_CONVERT_CONVERT_H_

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"
#include "kernels/requantize/requantize_q8.h"

namespace edgekit {

// n elements; strides in elements of each side. No overlap, no alignment.
struct QuantizeRow {
  const float* x;
  int64_t x_stride;
  uint8_t* y;
  int64_t y_stride;
  int64_t n;
  float scale;  // > 0
  int32_t zero;
  bool is_signed;
};

struct DequantizeRow {
  const uint8_t* x;
  int64_t x_stride;
  float* y;
  int64_t y_stride;
  int64_t n;
  float scale;
  int32_t zero;
  bool is_signed;
};

// Three rows of n bytes, x_step apart, to n neighbouring triples at y.
struct InterleaveRows {
  const uint8_t* x;
  int64_t x_step;
  uint8_t* y;
  int64_t n;
};

struct ConvertKernels {
  const char* name;
  Isa isa;
  double element_ns;  // rough cost of one element, to decide on threads
  void (*quantize_row)(const QuantizeRow& row) noexcept;
  void (*dequantize_row)(const DequantizeRow& row) noexcept;
  void (*interleave_3)(const InterleaveRows& rows) noexcept;
};

struct ConvertTable {
  const ConvertKernels* begin_;
  const ConvertKernels* end_;
  const ConvertKernels* begin() const { return begin_; }
  const ConvertKernels* end() const { return end_; }
};

// Every set of kernels of this build, whether or not this CPU can run it.
ConvertTable convert_kernels();
const ConvertKernels& select_convert(Isa isa);

// sat(rne(x / scale) + zero), by a true division; NaN gives the zero point.
inline int32_t quantize_value(float x, float scale, int32_t zero, bool is_signed) {
  const int32_t low = is_signed ? -128 : 0;
  const float v = x / scale;
  if (v != v) return zero;
  return round_half_even(clamp_float(v, static_cast<float>(low - zero), static_cast<float>(low + 255 - zero))) + zero;
}

inline float dequantize_value(int32_t x, float scale, int32_t zero) { return static_cast<float>(x - zero) * scale; }

#define EK_CONVERT(space, isa, element_ns)                \
  namespace space {                                       \
  void quantize_row(const QuantizeRow& row) noexcept;     \
  void dequantize_row(const DequantizeRow& row) noexcept; \
  void interleave_3(const InterleaveRows& rows) noexcept; \
  }
#include "kernels/convert/kernels.inc"
#undef EK_CONVERT

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_CONVERT_CONVERT_H_
