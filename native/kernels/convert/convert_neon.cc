// Rows whose float side is dense, 8 elements at a time. The bytes may be any stride apart: then they pass through a
// small buffer.
#include <arm_neon.h>

#include "kernels/convert/convert.h"

namespace edgekit::neon {
namespace {

// sat(rne(x / scale) + zero), four at a time: the conversion saturates and makes 0 of NaN.
inline int16x4_t quantize_4(const float* x, const QuantizeRow& r, int32_t low) {
  const float32x4_t v = vdivq_f32(vld1q_f32(x), vdupq_n_f32(r.scale));
  const int32x4_t rounded = vqaddq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(r.zero));
  return vmovn_s32(vminq_s32(vmaxq_s32(rounded, vdupq_n_s32(low)), vdupq_n_s32(low + 255)));
}

inline void store_spread(int8x8_t bytes, uint8_t* y, int64_t stride) {
  if (stride == 1) return vst1_s8(reinterpret_cast<int8_t*>(y), bytes);
  uint8_t all[8];
  vst1_s8(reinterpret_cast<int8_t*>(all), bytes);
  for (int i = 0; i < 8; ++i) y[i * stride] = all[i];
}

inline uint8x8_t load_spread(const uint8_t* x, int64_t stride) {
  if (stride == 1) return vld1_u8(x);
  uint8_t all[8];
  for (int i = 0; i < 8; ++i) all[i] = x[i * stride];
  return vld1_u8(all);
}

inline void dequantize_4(int16x4_t values, float* y, const DequantizeRow& r) {
  const int32x4_t centred = vsubq_s32(vmovl_s16(values), vdupq_n_s32(r.zero));
  vst1q_f32(y, vmulq_f32(vcvtq_f32_s32(centred), vdupq_n_f32(r.scale)));
}

}  // namespace

void quantize_row(const QuantizeRow& r) noexcept {
  QuantizeRow rest = r;
  if (r.x_stride == 1) {
    const int32_t low = r.is_signed ? -128 : 0;
    int64_t i = 0;
    for (; i + 8 <= r.n; i += 8) {
      const int16x8_t values = vcombine_s16(quantize_4(r.x + i, r, low), quantize_4(r.x + i + 4, r, low));
      store_spread(vmovn_s16(values), r.y + i * r.y_stride, r.y_stride);
    }
    rest.x += i;
    rest.y += i * r.y_stride;
    rest.n -= i;
  }
  scalar::quantize_row(rest);
}

void dequantize_row(const DequantizeRow& r) noexcept {
  DequantizeRow rest = r;
  if (r.y_stride == 1) {
    int64_t i = 0;
    for (; i + 8 <= r.n; i += 8) {
      const uint8x8_t bytes = load_spread(r.x + i * r.x_stride, r.x_stride);
      const int16x8_t values =
          r.is_signed ? vmovl_s8(vreinterpret_s8_u8(bytes)) : vreinterpretq_s16_u16(vmovl_u8(bytes));
      dequantize_4(vget_low_s16(values), r.y + i, r);
      dequantize_4(vget_high_s16(values), r.y + i + 4, r);
    }
    rest.x += i * r.x_stride;
    rest.y += i;
    rest.n -= i;
  }
  scalar::dequantize_row(rest);
}

void interleave_3(const InterleaveRows& r) noexcept {
  int64_t i = 0;
  for (; i + 16 <= r.n; i += 16) {
    const uint8x16x3_t rows = {{vld1q_u8(r.x + i), vld1q_u8(r.x + r.x_step + i), vld1q_u8(r.x + 2 * r.x_step + i)}};
    vst3q_u8(r.y + 3 * i, rows);
  }
  scalar::interleave_3({r.x + i, r.x_step, r.y + 3 * i, r.n - i});
}

}  // namespace edgekit::neon
