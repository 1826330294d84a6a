// The rows of preprocess with AVX2; bit-equal to rows_scalar.cc.
#include <immintrin.h>

#include "kernels/preprocess/rows.h"

namespace edgekit::preprocess {
namespace {

const __m256i* as256(const void* p) { return static_cast<const __m256i*>(p); }
const __m128i* as128(const void* p) { return static_cast<const __m128i*>(p); }
__m256i widen(const uint8_t* p) { return _mm256_cvtepu8_epi16(_mm_loadu_si128(as128(p))); }

__m256i pair_weights(int low, int high) {
  return _mm256_set1_epi32(static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(low)) |
                                                static_cast<uint32_t>(static_cast<uint16_t>(high)) << 16));
}

// vpmulhrsw computes exactly (a * b + 2^14) >> 15.
void blend(const uint8_t* a, const uint8_t* b, int weight_q15, int count, int16_t* t) noexcept {
  const __m256i weight = _mm256_set1_epi16(static_cast<int16_t>(weight_q15));
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i va = _mm256_slli_epi16(widen(a + i), 7);
    const __m256i vb = _mm256_slli_epi16(widen(b + i), 7);
    const __m256i step = _mm256_mulhrs_epi16(_mm256_sub_epi16(vb, va), weight);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t + i), _mm256_add_epi16(va, step));
  }
  scalar_rows().blend(a + i, b + i, weight_q15, count - i, t + i);
}

void accumulate(const uint8_t* rows, int64_t row_stride, const int16_t* weights_q14, int row_count, int count,
                int16_t* t) noexcept {
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    __m256i low = _mm256_set1_epi32(64), high = low;
    for (int r = 0; r < row_count; r += 2) {
      const bool pair = r + 1 < row_count;
      const __m256i first = widen(rows + r * row_stride + i);
      const __m256i second = pair ? widen(rows + (r + 1) * row_stride + i) : _mm256_setzero_si256();
      const __m256i weight = pair_weights(weights_q14[r], pair ? weights_q14[r + 1] : 0);
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(first, second), weight));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(first, second), weight));
    }
    const __m256i packed = _mm256_packs_epi32(_mm256_srai_epi32(low, 7), _mm256_srai_epi32(high, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t + i), packed);
  }
  scalar_rows().accumulate(rows + i, row_stride, weights_q14, row_count, count - i, t + i);
}

__m256i round_shift(__m256i sums) { return _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << 20)), 21); }

// Eight s32 grey levels to eight bytes in order.
__m128i narrow8(__m256i v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return _mm_packus_epi16(words, words);
}

void filter1(const int16_t* t, const PairTaps& taps, uint8_t* const* out) noexcept {
  for (int i = 0; i < taps.count; i += 8) {
    const __m256i index = _mm256_loadu_si256(as256(taps.first + i));
    const __m256i pairs = _mm256_i32gather_epi32(reinterpret_cast<const int*>(t), index, 2);
    const __m256i sums = _mm256_madd_epi16(pairs, _mm256_loadu_si256(as256(taps.weights + i)));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out[0] + i), narrow8(round_shift(sums)));
  }
}

void filter2(const int16_t* t, const PairTaps& taps, uint8_t* const* out) noexcept {
  const __m256i pair_up =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  const __m256i double_up = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  const __m128i split = _mm_setr_epi8(0, 2, 4, 6, -1, -1, -1, -1, 1, 3, 5, 7, -1, -1, -1, -1);
  for (int i = 0; i < taps.count; i += 4) {
    const __m128i index = _mm_loadu_si128(as128(taps.first + i));
    const __m256i samples = _mm256_i32gather_epi64(reinterpret_cast<const long long*>(t), index, 4);  // NOLINT
    const __m256i weights =
        _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(_mm_loadu_si128(as128(taps.weights + i))), double_up);
    const __m256i sums = _mm256_madd_epi16(_mm256_shuffle_epi8(samples, pair_up), weights);
    const __m128i bytes = _mm_shuffle_epi8(narrow8(round_shift(sums)), split);
    _mm_storeu_si32(out[0] + i, bytes);
    _mm_storeu_si32(out[1] + i, _mm_srli_si128(bytes, 8));
  }
}

// One pixel a 128-bit lane: [r0 g0 b0 r1 g1 b1 . .] becomes pairs of taps, vpmaddwd gives [r g b 0].
void filter3(const int16_t* t, const PairTaps& taps, uint8_t* const* out) noexcept {
  const __m256i pair_up =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1));
  const __m128i gather_channels = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int i = 0; i < taps.count; i += 8) {
    const __m256i weights = _mm256_loadu_si256(as256(taps.weights + i));
    __m256i levels[4];
    for (int k = 0; k < 4; ++k) {
      const int32_t* first = taps.first + i + 2 * k;
      const __m256i samples = _mm256_inserti128_si256(
          _mm256_castsi128_si256(_mm_loadu_si128(as128(t + 3 * static_cast<int64_t>(first[0])))),
          _mm_loadu_si128(as128(t + 3 * static_cast<int64_t>(first[1]))), 1);
      const __m256i lanes = _mm256_setr_epi32(2 * k, 2 * k, 2 * k, 2 * k, 2 * k + 1, 2 * k + 1, 2 * k + 1, 2 * k + 1);
      const __m256i pair = _mm256_permutevar8x32_epi32(weights, lanes);
      levels[k] = round_shift(_mm256_madd_epi16(_mm256_shuffle_epi8(samples, pair_up), pair));
    }
    const __m256i bytes =
        _mm256_packus_epi16(_mm256_packs_epi32(levels[0], levels[1]), _mm256_packs_epi32(levels[2], levels[3]));
    const __m128i even = _mm_shuffle_epi8(_mm256_castsi256_si128(bytes), gather_channels);
    const __m128i odd = _mm_shuffle_epi8(_mm256_extracti128_si256(bytes, 1), gather_channels);
    const __m128i rg = _mm_unpacklo_epi8(even, odd);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out[0] + i), rg);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out[1] + i), _mm_srli_si128(rg, 8));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out[2] + i), _mm_unpackhi_epi8(even, odd));
  }
}

// 16 levels: two halves of s32 with 13 fractional bits to bytes in order.
void store_levels(__m256i low, __m256i high, uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(4096);
  low = _mm256_srai_epi32(_mm256_add_epi32(low, half), 13);
  high = _mm256_srai_epi32(_mm256_add_epi32(high, half), 13);
  const __m256i words = _mm256_packs_epi32(low, high);  // back in order: unpack and pack are both in-lane
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}

void yuv_to_rgb(const uint8_t* const* yuv, const YuvCoefficients& k, int count, uint8_t* const* rgb) noexcept {
  const __m256i red = pair_weights(k.cy, k.crv);
  const __m256i green = pair_weights(k.cy, k.cgv);
  const __m256i green_u = pair_weights(k.cgu, 0);
  const __m256i blue = pair_weights(k.cy, k.cbu);
  const __m256i black = _mm256_set1_epi16(k.y0);
  const __m256i middle = _mm256_set1_epi16(128);
  const __m256i zero = _mm256_setzero_si256();
  for (int i = 0; i < count; i += 16) {
    const __m256i y = _mm256_sub_epi16(widen(yuv[0] + i), black);
    const __m256i u = _mm256_sub_epi16(widen(yuv[1] + i), middle);
    const __m256i v = _mm256_sub_epi16(widen(yuv[2] + i), middle);
    const __m256i yv_low = _mm256_unpacklo_epi16(y, v), yv_high = _mm256_unpackhi_epi16(y, v);
    store_levels(_mm256_madd_epi16(yv_low, red), _mm256_madd_epi16(yv_high, red), rgb[0] + i);
    store_levels(
        _mm256_add_epi32(_mm256_madd_epi16(yv_low, green), _mm256_madd_epi16(_mm256_unpacklo_epi16(u, zero), green_u)),
        _mm256_add_epi32(_mm256_madd_epi16(yv_high, green), _mm256_madd_epi16(_mm256_unpackhi_epi16(u, zero), green_u)),
        rgb[1] + i);
    store_levels(_mm256_madd_epi16(_mm256_unpacklo_epi16(y, u), blue),
                 _mm256_madd_epi16(_mm256_unpackhi_epi16(y, u), blue), rgb[2] + i);
  }
}

void interleave3(const uint8_t* const* in, int count, uint8_t* out) noexcept {
  // Byte j of block b of the 48 output bytes is sample (16 * b + j) / 3 of channel (16 * b + j) % 3.
  alignas(16) static constexpr auto kMasks = [] {
    struct {
      int8_t bytes[3][3][16];
    } masks{};
    for (int block = 0; block < 3; ++block) {
      for (int j = 0; j < 16; ++j) {
        for (int c = 0; c < 3; ++c) {
          const int position = 16 * block + j;
          masks.bytes[block][c][j] = static_cast<int8_t>(position % 3 == c ? position / 3 : -1);
        }
      }
    }
    return masks;
  }();
  int i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int block = 0; block < 3; ++block) {
      __m128i mixed = _mm_setzero_si128();
      for (int c = 0; c < 3; ++c) {
        const __m128i samples = _mm_loadu_si128(as128(in[c] + i));
        mixed = _mm_or_si128(mixed, _mm_shuffle_epi8(samples, _mm_loadu_si128(as128(kMasks.bytes[block][c]))));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * i + 16 * block), mixed);
    }
  }
  const uint8_t* tails[3] = {in[0] + i, in[1] + i, in[2] + i};
  scalar_rows().interleave3(tails, count - i, out + 3 * i);
}

void to_f32(const uint8_t* in, int count, const float* gain, const float* offset, float* out) noexcept {
  int i = 0;
  for (; i + 24 <= count; i += 24) {
    for (int k = 0; k < 24; k += 8) {
      const __m256i levels = _mm256_cvtepu8_epi32(_mm_loadl_epi64(as128(in + i + k)));
      const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(levels), _mm256_loadu_ps(gain + k));
      _mm256_storeu_ps(out + i + k, _mm256_add_ps(scaled, _mm256_loadu_ps(offset + k)));
    }
  }
  scalar_rows().to_f32(in + i, count - i, gain, offset, out + i);
}

}  // namespace

const RowKernels& avx2_rows() {
  static const RowKernels table = {
      "avx2",      blend, accumulate, {filter1, filter2, filter3}, yuv_to_rgb, scalar_rows().rgb_to_gray,
      interleave3, to_f32};
  return table;
}

}  // namespace edgekit::preprocess
