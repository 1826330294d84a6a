// Floats, Ints and Mask for AVX-512: 16 lanes. See floats_scalar.h.
#ifndef EDGEKIT_KERNELS_SIMD_FLOATS_AVX512_VNNI_H_
#define EDGEKIT_KERNELS_SIMD_FLOATS_AVX512_VNNI_H_

#include <immintrin.h>

#include <cstdint>

#define EK_SIMD avx512_vnni

namespace edgekit {
namespace avx512_vnni {

using Floats = __m512;
using Ints = __m512i;
using Mask = __mmask16;
inline constexpr int kLanes = 16;

inline Floats load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Floats a) { _mm512_storeu_ps(p, a); }
inline Floats splat(float a) { return _mm512_set1_ps(a); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Mask less(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
inline Mask equal(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Floats select(Mask m, Floats a, Floats b) { return _mm512_mask_blend_ps(m, b, a); }
inline Floats max_of(Floats a, Floats b) { return _mm512_max_ps(a, b); }
inline Floats min_of(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats sqrt(Floats a) { return _mm512_sqrt_ps(a); }
inline Floats round_even(Floats a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Floats floor(Floats a) { return _mm512_floor_ps(a); }
inline Floats ceil(Floats a) { return _mm512_ceil_ps(a); }

inline Ints int_splat(int32_t a) { return _mm512_set1_epi32(a); }
inline Ints to_int(Floats a) { return _mm512_cvtps_epi32(a); }
inline Floats to_float(Ints a) { return _mm512_cvtepi32_ps(a); }
inline Ints bits_of(Floats a) { return _mm512_castps_si512(a); }
inline Floats of_bits(Ints bits) { return _mm512_castsi512_ps(bits); }
inline Ints int_add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Ints int_sub(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
inline Ints int_and(Ints a, Ints b) { return _mm512_and_si512(a, b); }
inline Ints int_or(Ints a, Ints b) { return _mm512_or_si512(a, b); }
template <int count>
inline Ints shift_left(Ints a) {
  return _mm512_slli_epi32(a, count);
}
template <int count>
inline Ints shift_right(Ints a) {
  return _mm512_srai_epi32(a, count);
}

using Bytes = __m512i;
inline constexpr int kByteLanes = 64;
inline Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline void store_bytes(uint8_t* p, Bytes a) { _mm512_storeu_si512(p, a); }
inline Bytes max_u8(Bytes a, Bytes b) { return _mm512_max_epu8(a, b); }
inline Bytes max_s8(Bytes a, Bytes b) { return _mm512_max_epi8(a, b); }

}  // namespace avx512_vnni
}  // namespace edgekit

#include "kernels/simd/float_math.inc"

#endif  // EDGEKIT_KERNELS_SIMD_FLOATS_AVX512_VNNI_H_
