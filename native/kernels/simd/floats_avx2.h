// Floats, Ints and Mask for AVX2 with FMA: 8 lanes. See floats_scalar.h.
#ifndef EDGEKIT_KERNELS_SIMD_FLOATS_AVX2_H_
#define EDGEKIT_KERNELS_SIMD_FLOATS_AVX2_H_

#include <immintrin.h>

#include <cstdint>

#define EK_SIMD avx2

namespace edgekit {
namespace avx2 {

using Floats = __m256;
using Ints = __m256i;
using Mask = __m256;
inline constexpr int kLanes = 8;

inline Floats load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Floats a) { _mm256_storeu_ps(p, a); }
inline Floats splat(float a) { return _mm256_set1_ps(a); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
inline Mask less(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
inline Mask equal(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
inline Floats select(Mask m, Floats a, Floats b) { return _mm256_blendv_ps(b, a, m); }
inline Floats max_of(Floats a, Floats b) { return _mm256_max_ps(a, b); }
inline Floats min_of(Floats a, Floats b) { return _mm256_min_ps(a, b); }
inline Floats sqrt(Floats a) { return _mm256_sqrt_ps(a); }
inline Floats round_even(Floats a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Floats floor(Floats a) { return _mm256_floor_ps(a); }
inline Floats ceil(Floats a) { return _mm256_ceil_ps(a); }

inline Ints int_splat(int32_t a) { return _mm256_set1_epi32(a); }
inline Ints to_int(Floats a) { return _mm256_cvtps_epi32(a); }
inline Floats to_float(Ints a) { return _mm256_cvtepi32_ps(a); }
inline Ints bits_of(Floats a) { return _mm256_castps_si256(a); }
inline Floats of_bits(Ints bits) { return _mm256_castsi256_ps(bits); }
inline Ints int_add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Ints int_sub(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
inline Ints int_and(Ints a, Ints b) { return _mm256_and_si256(a, b); }
inline Ints int_or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
template <int count>
inline Ints shift_left(Ints a) {
  return _mm256_slli_epi32(a, count);
}
template <int count>
inline Ints shift_right(Ints a) {
  return _mm256_srai_epi32(a, count);
}

using Bytes = __m256i;
inline constexpr int kByteLanes = 32;
inline Bytes load_bytes(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline void store_bytes(uint8_t* p, Bytes a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a); }
inline Bytes max_u8(Bytes a, Bytes b) { return _mm256_max_epu8(a, b); }
inline Bytes max_s8(Bytes a, Bytes b) { return _mm256_max_epi8(a, b); }

}  // namespace avx2
}  // namespace edgekit

#include "kernels/simd/float_math.inc"

#endif  // EDGEKIT_KERNELS_SIMD_FLOATS_AVX2_H_
