// lut_q8 and binary_q8 on dense rows of s8, 8 bytes at a time; everything else goes to the scalar form.
#include "kernels/elementwise_q8/elementwise_q8.h"
#include "kernels/requantize/requantize_neon.h"

namespace edgekit::neon {
namespace {

// Four elements, as exact floats of their distance from the zero point.
inline float32x4_t centred(int16x4_t values, int32_t zero) {
  return vcvtq_f32_s32(vsubq_s32(vmovl_s16(values), vdupq_n_s32(zero)));
}

template <BinaryKind kKind>
inline int16x4_t combine_4(int16x4_t a, int16x4_t b, const AddQ8& p) {
  const float32x4_t lhs = centred(a, p.lhs_zero);
  const float32x4_t rhs = centred(b, p.rhs_zero);
  const float32x4_t lhs_scale = vdupq_n_f32(p.lhs_scale);
  float32x4_t v;
  if constexpr (kKind == BinaryKind::kMul) {
    v = vmulq_f32(vmulq_f32(lhs, rhs), lhs_scale);
  } else {
    const float32x4_t scaled_lhs = vmulq_f32(lhs, lhs_scale);
    const float32x4_t scaled_rhs = vmulq_f32(rhs, vdupq_n_f32(p.rhs_scale));
    v = kKind == BinaryKind::kAdd ? vaddq_f32(scaled_lhs, scaled_rhs) : vsubq_f32(scaled_lhs, scaled_rhs);
  }
  v = vminq_f32(vmaxq_f32(v, vdupq_n_f32(p.v_min)), vdupq_n_f32(p.v_max));
  return vmovn_s32(vaddq_s32(vcvtnq_s32_f32(v), vdupq_n_s32(p.zero)));
}

// Whole groups of 8; gives how many elements that were. An operand is dense or one value for all.
template <BinaryKind kKind>
int64_t combine_groups(const BinaryQ8Row& r) {
  const auto* a = reinterpret_cast<const int8_t*>(r.a);
  const auto* b = reinterpret_cast<const int8_t*>(r.b);
  int64_t i = 0;
  for (; i + 8 <= r.n; i += 8) {
    const int16x8_t lhs = vmovl_s8(r.a_stride == 0 ? vdup_n_s8(*a) : vld1_s8(a + i));
    const int16x8_t rhs = vmovl_s8(r.b_stride == 0 ? vdup_n_s8(*b) : vld1_s8(b + i));
    const int16x4_t low = combine_4<kKind>(vget_low_s16(lhs), vget_low_s16(rhs), r.params);
    const int16x4_t high = combine_4<kKind>(vget_high_s16(lhs), vget_high_s16(rhs), r.params);
    vst1_s8(reinterpret_cast<int8_t*>(r.y) + i, vmovn_s16(vcombine_s16(low, high)));
  }
  return i;
}

}  // namespace

void lut_q8_row(const LutQ8Row& r) noexcept {
  LutQ8Row rest = r;
  if (r.x_stride == 1 && r.y_stride == 1) {
    const uint8x8_t flip = vdup_n_u8(r.is_signed ? 0 : 0x80);  // look_up takes s8
    int64_t i = 0;
    for (; i + 8 <= r.n; i += 8) {
      const int8x8_t index = vreinterpret_s8_u8(veor_u8(vld1_u8(r.x + i), flip));
      vst1_u8(r.y + i, vreinterpret_u8_s8(look_up(index, r.lut)));
    }
    rest.x += i;
    rest.y += i;
    rest.n -= i;
  }
  scalar::lut_q8_row(rest);
}

void binary_q8_row(const BinaryQ8Row& r) noexcept {
  BinaryQ8Row rest = r;
  const bool dense = (r.a_stride == 0 || r.a_stride == 1) && (r.b_stride == 0 || r.b_stride == 1) && r.y_stride == 1;
  if (r.is_signed && dense) {
    const int64_t done = r.kind == BinaryKind::kAdd   ? combine_groups<BinaryKind::kAdd>(r)
                         : r.kind == BinaryKind::kSub ? combine_groups<BinaryKind::kSub>(r)
                                                      : combine_groups<BinaryKind::kMul>(r);
    rest.a += done * r.a_stride;
    rest.b += done * r.b_stride;
    rest.y += done;
    rest.n -= done;
  }
  scalar::binary_q8_row(rest);
}

}  // namespace edgekit::neon
