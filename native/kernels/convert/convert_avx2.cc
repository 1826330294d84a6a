// Rows whose float side is dense, 16 elements at a time. The bytes may be any stride apart (planes of an image to or
// from interleaved channels): then they pass through a small buffer.
#include <immintrin.h>

#include "kernels/convert/convert.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {
namespace {

// sat(rne(x / scale) + zero) as i32, eight at a time. max and min give their second operand for NaN: the clamp comes
// after NaN became 0.
inline __m256i quantize_8(const float* x, const QuantizeRow& r, __m256 least, __m256 most) {
  __m256 v = _mm256_div_ps(_mm256_loadu_ps(x), _mm256_set1_ps(r.scale));
  v = _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
  v = _mm256_min_ps(_mm256_max_ps(v, least), most);
  return _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(r.zero));
}

inline void store_spread(__m128i bytes, uint8_t* y, int64_t stride) {
  if (stride == 1) return _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bytes);
  alignas(16) uint8_t all[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(all), bytes);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) y[i * stride] = all[i];
}

inline __m128i load_spread(const uint8_t* x, int64_t stride) {
  if (stride == 1) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  alignas(16) uint8_t all[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) all[i] = x[i * stride];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(all));
}

inline void dequantize_8(__m128i bytes, float* y, const DequantizeRow& r) {
  const __m256i values = r.is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  const __m256i centred = _mm256_sub_epi32(values, _mm256_set1_epi32(r.zero));
  _mm256_storeu_ps(y, _mm256_mul_ps(_mm256_cvtepi32_ps(centred), _mm256_set1_ps(r.scale)));
}

// Where byte i of `part` (of three) of 16 triples comes from in row `row`; bytes of other rows become 0.
inline __m128i triple_order(int part, int row) {
  alignas(16) uint8_t order[16];
  for (int i = 0; i < 16; ++i) {
    const int at = 16 * part + i;
    order[i] = at % 3 == row ? static_cast<uint8_t>(at / 3) : 0x80;
  }
  return _mm_load_si128(reinterpret_cast<const __m128i*>(order));
}

}  // namespace

void interleave_3(const InterleaveRows& r) noexcept {
  __m128i orders[3][3];
  for (int part = 0; part < 3; ++part) {
    for (int row = 0; row < 3; ++row) orders[part][row] = triple_order(part, row);
  }
  int64_t i = 0;
  for (; i + 16 <= r.n; i += 16) {
    __m128i rows[3];
#pragma GCC unroll 3
    for (int row = 0; row < 3; ++row) {
      rows[row] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(r.x + row * r.x_step + i));
    }
#pragma GCC unroll 3
    for (int part = 0; part < 3; ++part) {
      __m128i bytes = _mm_shuffle_epi8(rows[0], orders[part][0]);
      bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(rows[1], orders[part][1]));
      bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(rows[2], orders[part][2]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(r.y + 3 * i + 16 * part), bytes);
    }
  }
  scalar::interleave_3({r.x + i, r.x_step, r.y + 3 * i, r.n - i});
}

void quantize_row(const QuantizeRow& r) noexcept {
  QuantizeRow rest = r;
  if (r.x_stride == 1) {
    const int32_t low = r.is_signed ? -128 : 0;
    const __m256 least = _mm256_set1_ps(static_cast<float>(low - r.zero));
    const __m256 most = _mm256_set1_ps(static_cast<float>(low + 255 - r.zero));
    int64_t i = 0;
    for (; i + 16 <= r.n; i += 16) {
      const __m256i first = quantize_8(r.x + i, r, least, most);
      const __m256i second = quantize_8(r.x + i + 8, r, least, most);
      store_spread(low_bytes(first, second), r.y + i * r.y_stride, r.y_stride);
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
    for (; i + 16 <= r.n; i += 16) {
      const __m128i bytes = load_spread(r.x + i * r.x_stride, r.x_stride);
      dequantize_8(bytes, r.y + i, r);
      dequantize_8(_mm_srli_si128(bytes, 8), r.y + i + 8, r);
    }
    rest.x += i * r.x_stride;
    rest.y += i;
    rest.n -= i;
  }
  scalar::dequantize_row(rest);
}

}  // namespace edgekit::avx2
