// Requantization of u8 outputs in AVX2 registers. Only for *_avx2.cc and *_avx_vnni.cc files. No fused multiply-add
// anywhere: the results equal the scalar ones bit for bit.
#ifndef EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_AVX2_H_
#define EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_AVX2_H_

#include <immintrin.h>

#include <cstring>

#include "kernels/requantize/requantize_q8.h"

// In an unnamed namespace: compiled for either, and each keeps its own.
namespace edgekit::avx2 {
namespace {

// Sums of 16 columns: columns 0-7 and 8-15.
struct Sums16 {
  __m256i low, high;
};

inline __m256i round_scaled(__m256i sums, __m256 scale, const RequantizeQ8& p) {
  __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), scale);
  if (!p.scale_below_one) v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(p.v_min)), _mm256_set1_ps(p.v_max));
  return _mm256_cvtps_epi32(v);
}

// 32 look-ups a vector. Of the 8 steps of a half, those up to the index's upper nibble apply: the index less 16 a step
// is then not yet negative, and vpshufb gives 0 where it is. Steps are differences, so their exclusive or is the entry.
template <int kCount>
inline __attribute__((always_inline)) void look_up_each(__m256i (&bytes)[kCount], const uint8_t (&steps)[256]) {
  __m256i upper[kCount], entry[kCount];
#pragma GCC unroll 3
  for (int n = 0; n < kCount; ++n) {
    upper[n] = _mm256_xor_si256(bytes[n], _mm256_set1_epi8(-128));
    entry[n] = _mm256_setzero_si256();
  }
  const __m256i sixteen = _mm256_set1_epi8(16);
#pragma GCC unroll 1
  for (int i = 0; i < 8; ++i) {
    const auto* at = reinterpret_cast<const __m128i*>(steps + 16 * i);
    const __m256i low_step = _mm256_broadcastsi128_si256(_mm_loadu_si128(at));
    const __m256i high_step = _mm256_broadcastsi128_si256(_mm_loadu_si128(at + 8));
#pragma GCC unroll 3
    for (int n = 0; n < kCount; ++n) {
      entry[n] = _mm256_xor_si256(entry[n], _mm256_shuffle_epi8(low_step, bytes[n]));
      entry[n] = _mm256_xor_si256(entry[n], _mm256_shuffle_epi8(high_step, upper[n]));
      bytes[n] = _mm256_subs_epi8(bytes[n], sixteen);
      upper[n] = _mm256_subs_epi8(upper[n], sixteen);
    }
  }
#pragma GCC unroll 3
  for (int n = 0; n < kCount; ++n) bytes[n] = entry[n];
}

inline __m256i look_up(__m256i index, const uint8_t (&steps)[256]) {
  __m256i bytes[1] = {index};
  look_up_each(bytes, steps);
  return bytes[0];
}

// Eight bytes less a zero point, scaled.
inline __m256 dequantize_8(__m128i bytes, int32_t zero, float scale) {
  const __m256i centred = _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_set1_epi32(zero));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(centred), _mm256_set1_ps(scale));
}

// What becomes of rounded sums in bytes. Saturating packs do what the clamp in float does: rounding is monotonic and
// the bounds are whole numbers.
struct ByteRange {
  __m256i zero, least, most;

  ByteRange(int32_t y_zero, int32_t y_min, int32_t y_max)
      : zero(_mm256_set1_epi16(static_cast<int16_t>(y_zero))),
        least(_mm256_set1_epi8(static_cast<char>(y_min))),
        most(_mm256_set1_epi8(static_cast<char>(y_max))) {}
  explicit ByteRange(const RequantizeQ8& p) : ByteRange(p.y_zero, p.y_min, p.y_max) {}
  explicit ByteRange(const AddQ8& p)
      : ByteRange(p.zero, p.zero + static_cast<int32_t>(p.v_min), p.zero + static_cast<int32_t>(p.v_max)) {}
};

// What add_directly takes.
struct DirectAdd {
  __m256 v_min, v_max, lhs_scale, rhs_scale;
  __m256i rhs_zero;

  explicit DirectAdd(const RequantizeQ8& p)
      : v_min(_mm256_set1_ps(p.v_min)),
        v_max(_mm256_set1_ps(p.v_max)),
        lhs_scale(_mm256_set1_ps(p.residual.lhs_scale)),
        rhs_scale(_mm256_set1_ps(p.residual.rhs_scale)),
        rhs_zero(_mm256_set1_epi32(p.residual.rhs_zero)) {}
};

// Rounds scaled sums and adds eight bytes, without making bytes of the sums in between; only where p.adds_directly. To
// be packed with the range of p.residual.
inline __attribute__((always_inline)) __m256i add_directly(__m256 scaled, const uint8_t* residual, const DirectAdd& c) {
  const __m256 clamped = _mm256_min_ps(_mm256_max_ps(scaled, c.v_min), c.v_max);
  const __m256 lhs = _mm256_round_ps(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(residual));
  const __m256i centred = _mm256_sub_epi32(_mm256_cvtepu8_epi32(bytes), c.rhs_zero);
  const __m256 rhs = _mm256_mul_ps(_mm256_cvtepi32_ps(centred), c.rhs_scale);
  return _mm256_cvtps_epi32(_mm256_add_ps(_mm256_mul_ps(lhs, c.lhs_scale), rhs));
}

inline __m256i add_8(__m128i lhs, __m128i rhs, const AddQ8& p) {
  const __m256 v =
      _mm256_add_ps(dequantize_8(lhs, p.lhs_zero, p.lhs_scale), dequantize_8(rhs, p.rhs_zero, p.rhs_scale));
  const __m256 clamped = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(p.v_min)), _mm256_set1_ps(p.v_max));
  return _mm256_add_epi32(_mm256_cvtps_epi32(clamped), _mm256_set1_epi32(p.zero));
}

// The low bytes of sixteen values in order; the values fit u8 or s8.
inline __m128i low_bytes(__m256i low, __m256i high) {
  const __m256i words =
      _mm256_and_si256(_mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8), _mm256_set1_epi16(0xff));
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

inline __m128i add_16(__m128i lhs, __m128i rhs, const AddQ8& p) {
  const __m256i low = add_8(lhs, rhs, p);
  const __m256i high = add_8(_mm_srli_si128(lhs, 8), _mm_srli_si128(rhs, 8), p);
  return low_bytes(low, high);
}

// Where the 16 bytes of one pixel go: only [first, first + count) of them exist in memory, relative to y.
struct Target16 {
  uint8_t* y;
  const uint8_t* residual;
};

inline __m128i load_part(const uint8_t* from, int first, int count) {
  alignas(16) uint8_t bytes[16] = {};
  std::memcpy(bytes + first, from + first, static_cast<size_t>(count));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(bytes));
}

inline void store_part(__m128i bytes, uint8_t* to, int first, int count) {
  alignas(16) uint8_t all[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(all), bytes);
  std::memcpy(to + first, all + first, static_cast<size_t>(count));
}

inline void finish_16(__m128i bytes, const Target16& target, int first, int count, const RequantizeQ8& p) {
  const bool whole = count == 16;
  if (p.add) {
    const __m128i residual = whole ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(target.residual))
                                   : load_part(target.residual, first, count);
    bytes = add_16(bytes, residual, p.residual);
  }
  if (whole) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target.y), bytes);
  } else {
    store_part(bytes, target.y, first, count);
  }
}

}  // namespace
}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_REQUANTIZE_REQUANTIZE_AVX2_H_
