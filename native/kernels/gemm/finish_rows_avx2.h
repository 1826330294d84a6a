// From the sums of a tile of 16 columns to rows of y. Only for *_avx2.cc files.
#ifndef EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX2_H_
#define EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX2_H_

#include "kernels/gemm/gemm_q8.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {

// What a kernel's call has in common for all rows, in vectors.
struct FinishConstants {
  __m256 scale[2];
  __m256i zero, least, most, order;

  explicit FinishConstants(const GemmQ8Rows& t)
      : scale{_mm256_loadu_ps(t.scale), _mm256_loadu_ps(t.scale + 8)},
        zero(_mm256_set1_epi16(static_cast<int16_t>(t.requantize->y_zero))),
        least(_mm256_set1_epi8(static_cast<char>(t.requantize->y_min))),
        most(_mm256_set1_epi8(static_cast<char>(t.requantize->y_max))),
        order(_mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)) {}
};

// What follows the rounding. kPlain: nothing, kTable: the table, in whole panels with scales below one; kAny: whatever
// the operands say.
enum class Finish { kPlain, kTable, kAny };

inline Finish finish_of(const GemmQ8Rows& t) {
  const RequantizeQ8& p = *t.requantize;
  if (p.add || !p.scale_below_one || t.columns % 8 != 0) return Finish::kAny;
  return p.lut == nullptr ? Finish::kPlain : Finish::kTable;
}

// Rounds four vectors of sums to bytes: 16 columns of two rows (kVectors 2), or 8 of four (1).
template <int kVectors, Finish kFinish>
inline __attribute__((always_inline)) __m256i round_to_bytes(const GemmQ8Rows& t, const FinishConstants& c,
                                                             const __m256i (&sums)[4]) {
  __m256i v[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 scale = c.scale[i % kVectors];
    v[i] = kFinish == Finish::kAny ? round_scaled(sums[i], scale, *t.requantize)
                                   : _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sums[i]), scale));
  }
  const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), c.zero);
  const __m256i high = _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), c.zero);
  const __m256i bytes = _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(low, high), c.least), c.most);
  return _mm256_permutevar8x32_epi32(bytes, c.order);
}

template <int kVectors, Finish kFinish>
inline __attribute__((always_inline)) void store_row(const GemmQ8Rows& t, int64_t row, __m128i bytes) {
  uint8_t* y = t.y[row] + t.channel;
  if constexpr (kFinish == Finish::kAny) {
    const RequantizeQ8& p = *t.requantize;
    finish_16(bytes, {y, p.add ? t.residual[row] + t.channel : nullptr}, 0, t.columns, p);
  } else if constexpr (kVectors == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bytes);
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(y), bytes);
  }
}

// sums[r][i]: columns 8i to 8i + 7 of row first + r.
template <int kRows, int kVectors, Finish kFinish>
inline __attribute__((always_inline)) void finish_rows(const GemmQ8Rows& t, const FinishConstants& c, int64_t first,
                                                       const __m256i (&sums)[kRows][kVectors]) {
  constexpr int kStep = 4 / kVectors;  // rows of a vector of bytes
  constexpr int kCount = (kRows + kStep - 1) / kStep;
  __m256i bytes[kCount];
#pragma GCC unroll 3
  for (int n = 0; n < kCount; ++n) {
    __m256i four[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int row = n * kStep + i / kVectors;
      four[i] = sums[row < kRows ? row : kRows - 1][i % kVectors];
    }
    bytes[n] = round_to_bytes<kVectors, kFinish>(t, c, four);
  }
  if (kFinish == Finish::kTable || (kFinish == Finish::kAny && t.requantize->lut != nullptr)) {
    look_up_each(bytes, t.requantize->lut_steps);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256i both = bytes[r / kStep];
    const bool upper = r % kStep * kVectors >= 2;
    const __m128i half = upper ? _mm256_extracti128_si256(both, 1) : _mm256_castsi256_si128(both);
    store_row<kVectors, kFinish>(t, first + r, kVectors == 1 && r % 2 == 1 ? _mm_unpackhi_epi64(half, half) : half);
  }
}

}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX2_H_
