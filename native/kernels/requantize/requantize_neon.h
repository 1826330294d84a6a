// Requantization of s8 outputs in NEON registers, 8 columns at a time. Only for ARM files. vcvtnq rounds half to even
// by itself; nothing is fused, so the results equal the scalar ones bit for bit.
#ifndef EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_NEON_H_
#define EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_NEON_H_

#include <arm_neon.h>

#include <cstring>

#include "kernels/requantize/requantize_q8.h"

// Static: these are compiled for NEON and for NEON with dot products, and each keeps its own.
namespace edgekit::neon {
namespace {

// The conversion saturates, so sums need no clamp in float: rounding is monotonic and the bounds are whole numbers.
[[maybe_unused]] inline int8x8_t requantize_8(int32x4_t low, int32x4_t high, const float* scale,
                                              const RequantizeQ8& p) {
  const int32x4_t a = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(low), vld1q_f32(scale)));
  const int32x4_t b = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(high), vld1q_f32(scale + 4)));
  const int16x8_t words =
      vqaddq_s16(vcombine_s16(vqmovn_s32(a), vqmovn_s32(b)), vdupq_n_s16(static_cast<int16_t>(p.y_zero)));
  const int8x8_t bytes = vqmovn_s16(words);
  return vmin_s8(vmax_s8(bytes, vdup_n_s8(static_cast<int8_t>(p.y_min))), vdup_n_s8(static_cast<int8_t>(p.y_max)));
}

// Eight look-ups. A table instruction reaches 64 entries and gives 0 (tbl) or leaves its lane (tbx) beyond them.
[[maybe_unused]] inline int8x8_t look_up(int8x8_t index, const uint8_t* lut) {
  uint8x8_t at = veor_u8(vreinterpret_u8_s8(index), vdup_n_u8(0x80));
  uint8x8_t entry = vdup_n_u8(0);
  for (int quarter = 0; quarter < 4; ++quarter) {
    entry = vqtbx4_u8(entry, vld1q_u8_x4(lut + 64 * quarter), at);
    at = vsub_u8(at, vdup_n_u8(64));
  }
  return vreinterpret_s8_u8(entry);
}

[[maybe_unused]] inline float32x4_t dequantize_4(int16x4_t values, int32_t zero, float scale) {
  const int32x4_t centred = vsubq_s32(vmovl_s16(values), vdupq_n_s32(zero));
  return vmulq_f32(vcvtq_f32_s32(centred), vdupq_n_f32(scale));
}

[[maybe_unused]] inline int32x4_t add_4(int16x4_t lhs, int16x4_t rhs, const AddQ8& p) {
  const float32x4_t v =
      vaddq_f32(dequantize_4(lhs, p.lhs_zero, p.lhs_scale), dequantize_4(rhs, p.rhs_zero, p.rhs_scale));
  const float32x4_t clamped = vminq_f32(vmaxq_f32(v, vdupq_n_f32(p.v_min)), vdupq_n_f32(p.v_max));
  return vaddq_s32(vcvtnq_s32_f32(clamped), vdupq_n_s32(p.zero));
}

[[maybe_unused]] inline int8x8_t add_8(int8x8_t lhs, int8x8_t rhs, const AddQ8& p) {
  const int16x8_t a = vmovl_s8(lhs);
  const int16x8_t b = vmovl_s8(rhs);
  const int32x4_t low = add_4(vget_low_s16(a), vget_low_s16(b), p);
  const int32x4_t high = add_4(vget_high_s16(a), vget_high_s16(b), p);
  return vmovn_s16(vcombine_s16(vmovn_s32(low), vmovn_s32(high)));
}

// The table and the residual, then to memory: bytes [first, first + count) of 8, relative to y.
[[maybe_unused]] inline void finish_8(int8x8_t bytes, uint8_t* y, const uint8_t* residual, int first, int count,
                                      const RequantizeQ8& p) {
  if (p.lut != nullptr) bytes = look_up(bytes, p.lut);
  if (p.add) {
    int8_t part[8] = {};
    std::memcpy(part + first, residual + first, static_cast<size_t>(count));
    bytes = add_8(bytes, vld1_s8(part), p.residual);
  }
  if (count == 8) {
    vst1_s8(reinterpret_cast<int8_t*>(y), bytes);
    return;
  }
  int8_t all[8];
  vst1_s8(all, bytes);
  std::memcpy(y + first, all + first, static_cast<size_t>(count));
}

}  // namespace
}  // namespace edgekit::neon

#endif  // EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_NEON_H_
