// What happens to the i32 accumulator of an INT8 product on its way to memory: scale, clamp, round, zero point, then an
// optional table and an optional residual addition. The formulas stand in edgekit/package/program_schema.toml
// (conv_q8).
#ifndef EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_Q8_H_
#define EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_Q8_H_

#include <cmath>
#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace edgekit {

// Quantized a + b with ratios of scales, clamped and rounded; the residual addition, and binary_q8.
struct AddQ8 {
  int32_t lhs_zero, rhs_zero;
  float lhs_scale, rhs_scale;
  int32_t zero;
  float v_min, v_max;  // the clamp, relative to the zero point
};

// One op's requantization. Integers are values of y's dtype, not bit patterns.
struct RequantizeQ8 {
  int32_t y_zero, y_min, y_max;
  float v_min, v_max;    // f32(y_min - y_zero), f32(y_max - y_zero)
  bool scale_below_one;  // |scale| < 1 in every channel: acc * scale rounds inside i32 even before it is clamped
  const uint8_t* lut;    // 256 bytes of y's dtype, or null
  // The lut for byte shuffles: lut_steps[i] = lut[i] ^ lut[i - 16], with lut[i] itself at the start of either half.
  uint8_t lut_steps[256];
  bool permutes_bytes;  // the CPU looks up bytes in registers (avx512vbmi), beyond what an instruction set requires
  bool add;             // whether a residual is added
  // No table in between, one zero point for both, and the sum rounds inside i32 even before it is clamped.
  bool adds_directly;
  AddQ8 residual;
};

// Scales are bounded so that no sum of products becomes infinite or NaN.
inline constexpr float kMaxScale = 1e20f;

// Half to even; |v| is far below 2^31.
inline int32_t round_half_even(float v) { return static_cast<int32_t>(std::lrintf(v)); }

inline float clamp_float(float v, float least, float most) {
  v = v < least ? least : v;
  return v > most ? most : v;
}

// The value a byte stands for. The byte of a value is its low byte, signed or not.
inline int32_t q8_value(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

inline int32_t add_q8(const AddQ8& p, int32_t lhs, int32_t rhs) {
  const float a = static_cast<float>(lhs - p.lhs_zero) * p.lhs_scale;
  const float b = static_cast<float>(rhs - p.rhs_zero) * p.rhs_scale;
  return round_half_even(clamp_float(a + b, p.v_min, p.v_max)) + p.zero;
}

// residual: the byte to add; ignored unless p.add.
inline uint8_t requantize_q8(const RequantizeQ8& p, int32_t acc, float scale, uint8_t residual, bool is_signed) {
  int32_t t = round_half_even(clamp_float(static_cast<float>(acc) * scale, p.v_min, p.v_max)) + p.y_zero;
  if (p.lut != nullptr) t = q8_value(p.lut[is_signed ? t + 128 : t], is_signed);
  if (p.add) t = add_q8(p.residual, t, q8_value(residual, is_signed));
  return static_cast<uint8_t>(t);
}

// The tail of the attributes that conv_q8 and depthwise_q8 have in common.
struct RequantizeAttrs {
  int32_t x_zero, y_zero, y_min, y_max, fuse_lut, fuse_add;
  int32_t add_lhs_zero;
  float add_lhs_scale;
  int32_t add_rhs_zero;
  float add_rhs_scale;
  int32_t add_zero, add_min, add_max;
};

// Attrs: ConvQ8Attrs or DepthwiseQ8Attrs.
template <typename Attrs>
RequantizeAttrs requantize_attrs(const Attrs& a) {
  return {a.x_zero,        a.y_zero,       a.y_min,         a.y_max,    a.fuse_lut, a.fuse_add, a.add_lhs_zero,
          a.add_lhs_scale, a.add_rhs_zero, a.add_rhs_scale, a.add_zero, a.add_min,  a.add_max};
}

// The operands that requantization reads; lut and residual are null when absent.
struct RequantizeOperands {
  const TensorView& y;
  const TensorView& scale;
  const TensorView* lut;
  const TensorView* residual;
};

// Everything that concerns requantization: dtypes, clamps, scales, table, residual.
Status check_requantize(const RequantizeAttrs& attrs, const RequantizeOperands& operands);

// A zero point and a clamp: values of the dtype, in order.
Status check_clamp_q8(Dtype dtype, int32_t zero, int32_t least, int32_t most);

Status check_scale(const char* name, float scale);

// See RequantizeQ8::lut_steps.
void fill_lut_steps(const uint8_t* lut, uint8_t (&steps)[256]);

RequantizeQ8 requantize_params(const RequantizeAttrs& attrs, const RequantizeOperands& operands);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_Q8_H_
