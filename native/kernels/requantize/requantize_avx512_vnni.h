// Requantization of u8 outputs in AVX-512 registers: 64 columns of one output pixel at a time. Only for
// *_avx512_vnni.cc files. No fused multiply-add: the results equal the scalar ones bit for bit.
#ifndef EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_AVX512_VNNI_H_
#define EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_AVX512_VNNI_H_

#include <immintrin.h>

#include "kernels/requantize/requantize_q8.h"

namespace edgekit::avx512_vnni {

// sums += four products of u8 and s8 in each lane. As assembly, since GCC 12 spills the sums of the intrinsic and so
// halves the speed of a tile; the portable build for tests (EDGEKIT_SIMDE) has the intrinsic.
inline void dot_add(__m512i& sums, __m512i u8, __m512i s8) {
#if defined(EDGEKIT_SIMDE)
  sums = _mm512_dpbusd_epi32(sums, u8, s8);
#else
  asm("vpdpbusd %[b], %[a], %[sums]" : [sums] "+v"(sums) : [a] "v"(u8), [b] "v"(s8));
#endif
}

template <bool kBelowOne>
inline __m512i round_scaled(__m512i sums, const float* scale, const RequantizeQ8& p) {
  __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_loadu_ps(scale));
  if (!kBelowOne) v = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(p.v_min)), _mm512_set1_ps(p.v_max));
  return _mm512_cvtps_epi32(v);
}

inline __m512i round_scaled(__m512i sums, const float* scale, const RequantizeQ8& p) {
  if (__builtin_expect(!p.scale_below_one, 0)) return round_scaled<false>(sums, scale, p);
  return round_scaled<true>(sums, scale, p);
}

// What becomes of rounded sums, in registers: stores of bytes would have it read again from memory.
struct ByteRange {
  __m512i zero, y_min, y_max;

  ByteRange(int32_t y_zero, int32_t least, int32_t most)
      : zero(_mm512_set1_epi16(static_cast<int16_t>(y_zero))),
        y_min(_mm512_set1_epi8(static_cast<char>(least))),
        y_max(_mm512_set1_epi8(static_cast<char>(most))) {}
  explicit ByteRange(const RequantizeQ8& p) : ByteRange(p.y_zero, p.y_min, p.y_max) {}
};

// Saturating packs do what the clamp in float does: rounding is monotonic and the bounds are whole numbers.
inline __m512i pack_words(__m512i a, __m512i b, const ByteRange& range) {
  return _mm512_adds_epi16(_mm512_packs_epi32(a, b), range.zero);
}

inline __m512i pack_bytes(__m512i low, __m512i high, const ByteRange& range) {
  return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(low, high), range.y_min), range.y_max);
}

// Lane i of the result holds lane i of a, b, c and d.
inline __m512i pack_lanes(const __m512i (&v)[4], const ByteRange& range) {
  return pack_bytes(pack_words(v[0], v[1], range), pack_words(v[2], v[3], range), range);
}

inline __m512i pack_lanes(const __m512i (&v)[4], const RequantizeQ8& p) { return pack_lanes(v, ByteRange(p)); }

inline __m512 dequantize_16(__m128i bytes, int32_t zero, float scale) {
  const __m512i centred = _mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(zero));
  return _mm512_mul_ps(_mm512_cvtepi32_ps(centred), _mm512_set1_ps(scale));
}

// Requantizes 16 sums and adds 16 bytes, without making bytes of the sums in between; only where p.adds_directly. To be
// packed with the zero point and the bounds of p.residual.
inline __m512i add_directly(__m512i sums, const float* scale, __m128i residual, const RequantizeQ8& p) {
  const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_loadu_ps(scale));
  const __m512 clamped = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(p.v_min)), _mm512_set1_ps(p.v_max));
  const __m512 lhs = _mm512_roundscale_ps(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 rhs = dequantize_16(residual, p.residual.rhs_zero, p.residual.rhs_scale);
  return _mm512_cvtps_epi32(_mm512_add_ps(_mm512_mul_ps(lhs, _mm512_set1_ps(p.residual.lhs_scale)), rhs));
}

// From the order of pack_lanes to a, b, c, d.
inline __m512i order_lanes(__m512i bytes) {
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  return _mm512_permutexvar_epi32(order, bytes);
}

#if !defined(EDGEKIT_SIMDE)
// 64 look-ups in all 256 entries at once: two shuffles of two registers each, and the upper bit chooses. As assembly,
// since not every CPU with VNNI has it.
inline __m512i permute_bytes(__m512i index, const uint8_t* table) {
  __m512i lower = index;
  __m512i upper = index;
  const __m512i t[4] = {_mm512_loadu_si512(table), _mm512_loadu_si512(table + 64), _mm512_loadu_si512(table + 128),
                        _mm512_loadu_si512(table + 192)};
  asm("vpermi2b %[b], %[a], %[index]" : [index] "+v"(lower) : [a] "v"(t[0]), [b] "v"(t[1]));
  asm("vpermi2b %[b], %[a], %[index]" : [index] "+v"(upper) : [a] "v"(t[2]), [b] "v"(t[3]));
  return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lower, upper);
}
#endif

// 64 look-ups; for the shuffles of 16 entries see edgekit::avx2::look_up.
inline __m512i look_up(__m512i index, const RequantizeQ8& p) {
#if !defined(EDGEKIT_SIMDE)
  if (p.permutes_bytes) return permute_bytes(index, p.lut);
#endif
  __m512i lower = index;
  __m512i upper = _mm512_xor_si512(index, _mm512_set1_epi8(-128));
  __m512i entry = _mm512_setzero_si512();
  for (int i = 0; i < 8; ++i) {
    const auto* at = reinterpret_cast<const __m128i*>(p.lut_steps + 16 * i);
    const __m512i low_step = _mm512_broadcast_i32x4(_mm_loadu_si128(at));
    const __m512i high_step = _mm512_broadcast_i32x4(_mm_loadu_si128(at + 8));
    entry = _mm512_xor_si512(entry, _mm512_shuffle_epi8(low_step, lower));
    entry = _mm512_xor_si512(entry, _mm512_shuffle_epi8(high_step, upper));
    lower = _mm512_subs_epi8(lower, _mm512_set1_epi8(16));
    upper = _mm512_subs_epi8(upper, _mm512_set1_epi8(16));
  }
  return entry;
}

inline __m512i add_16(__m128i lhs, __m128i rhs, const AddQ8& p) {
  const __m512 v =
      _mm512_add_ps(dequantize_16(lhs, p.lhs_zero, p.lhs_scale), dequantize_16(rhs, p.rhs_zero, p.rhs_scale));
  return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(p.v_min)), _mm512_set1_ps(p.v_max)));
}

inline __m512i add_64(__m512i lhs, __m512i rhs, const AddQ8& p) {
  const __m512i v[4] = {add_16(_mm512_extracti32x4_epi32(lhs, 0), _mm512_extracti32x4_epi32(rhs, 0), p),
                        add_16(_mm512_extracti32x4_epi32(lhs, 1), _mm512_extracti32x4_epi32(rhs, 1), p),
                        add_16(_mm512_extracti32x4_epi32(lhs, 2), _mm512_extracti32x4_epi32(rhs, 2), p),
                        add_16(_mm512_extracti32x4_epi32(lhs, 3), _mm512_extracti32x4_epi32(rhs, 3), p)};
  // Already clamped: the packs cannot saturate.
  const __m512i zero = _mm512_set1_epi16(static_cast<int16_t>(p.zero));
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
  return order_lanes(_mm512_packus_epi16(low, high));
}

// The bytes [first, first + count) of 64.
inline __mmask64 part_of_64(int first, int count) { return (~__mmask64{0} >> (64 - count)) << first; }

}  // namespace edgekit::avx512_vnni

#endif  // EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_AVX512_VNNI_H_
