// Floats, Ints and Mask for NEON (AArch64): 4 lanes. See floats_scalar.h.
#ifndef EDGEKIT_KERNELS_SIMD_FLOATS_NEON_H_
#define EDGEKIT_KERNELS_SIMD_FLOATS_NEON_H_

#include <arm_neon.h>

#include <cstdint>

#define EK_SIMD neon

namespace edgekit {
namespace neon {

using Floats = float32x4_t;
using Ints = int32x4_t;
using Mask = uint32x4_t;
inline constexpr int kLanes = 4;

inline Floats load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, Floats a) { vst1q_f32(p, a); }
inline Floats splat(float a) { return vdupq_n_f32(a); }
inline Floats fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
inline Mask less(Floats a, Floats b) { return vcltq_f32(a, b); }
inline Mask equal(Floats a, Floats b) { return vceqq_f32(a, b); }
inline Floats select(Mask m, Floats a, Floats b) { return vbslq_f32(m, a, b); }
// Not vmaxq_f32: it orders -0 below +0 and prefers NaN of either side, where the other tables give b.
inline Floats max_of(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline Floats min_of(Floats a, Floats b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
inline Floats sqrt(Floats a) { return vsqrtq_f32(a); }
inline Floats round_even(Floats a) { return vrndnq_f32(a); }
inline Floats floor(Floats a) { return vrndmq_f32(a); }
inline Floats ceil(Floats a) { return vrndpq_f32(a); }

inline Ints int_splat(int32_t a) { return vdupq_n_s32(a); }
inline Ints to_int(Floats a) { return vcvtnq_s32_f32(a); }
inline Floats to_float(Ints a) { return vcvtq_f32_s32(a); }
inline Ints bits_of(Floats a) { return vreinterpretq_s32_f32(a); }
inline Floats of_bits(Ints bits) { return vreinterpretq_f32_s32(bits); }
inline Ints int_add(Ints a, Ints b) { return vaddq_s32(a, b); }
inline Ints int_sub(Ints a, Ints b) { return vsubq_s32(a, b); }
inline Ints int_and(Ints a, Ints b) { return vandq_s32(a, b); }
inline Ints int_or(Ints a, Ints b) { return vorrq_s32(a, b); }
template <int count>
inline Ints shift_left(Ints a) {
  return vshlq_n_s32(a, count);
}
template <int count>
inline Ints shift_right(Ints a) {
  return vshrq_n_s32(a, count);
}

using Bytes = uint8x16_t;
inline constexpr int kByteLanes = 16;
inline Bytes load_bytes(const uint8_t* p) { return vld1q_u8(p); }
inline void store_bytes(uint8_t* p, Bytes a) { vst1q_u8(p, a); }
inline Bytes max_u8(Bytes a, Bytes b) { return vmaxq_u8(a, b); }
inline Bytes max_s8(Bytes a, Bytes b) {
  return vreinterpretq_u8_s8(vmaxq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
}

}  // namespace neon
}  // namespace edgekit

#include "kernels/simd/float_math.inc"

#endif  // EDGEKIT_KERNELS_SIMD_FLOATS_NEON_H_
