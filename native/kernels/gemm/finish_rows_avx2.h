// From the sums of a tile of 16 columns to rows of y. Only for *_avx2.cc and
// *_avx_vnni.cc files, each with its own.
#ifndef EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX2_H_
#define EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX2_H_

#include "kernels/gemm/gemm_q8.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {
namespace {

// What follows the rounding. kPlain: nothing, kTable: the table, both in whole panels with scales below one; kAdd: the
// residual, from the sums themselves; kAny: whatever the operands say.
enum class Finish { kPlain, kTable, kAdd, kAny };

inline Finish finish_of(const GemmQ8Rows& t) {
  const RequantizeQ8& p = *t.requantize;
  if (t.columns % 8 != 0) return Finish::kAny;
  if (p.adds_directly) return Finish::kAdd;
  if (p.add || !p.scale_below_one) return Finish::kAny;
  return p.lut == nullptr ? Finish::kPlain : Finish::kTable;
}

// What a kernel's call has in common for all rows, in vectors.
struct FinishConstants {
  __m256 scale[2];
  ByteRange range;
  __m256i order;
  DirectAdd add;

  FinishConstants(const GemmQ8Rows& t, Finish finish)
      : scale{_mm256_loadu_ps(t.scale), _mm256_loadu_ps(t.scale + 8)},
        range(finish == Finish::kAdd ? ByteRange(t.requantize->residual) : ByteRange(*t.requantize)),
        order(_mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)),
        add(*t.requantize) {}
};

// Where rows of a tile go. A copy, since every store of bytes would have the call's fields read again.
struct FinishedRows {
  uint8_t* const* y;
  const uint8_t* const* residual;
  int64_t channel;

  FinishedRows(const GemmQ8Rows& t, int64_t first) : y(t.y + first), residual(t.residual + first), channel(t.channel) {}
};

// Whole numbers of eight sums of a row, columns 8i to 8i + 7.
template <Finish kFinish>
inline __attribute__((always_inline)) __m256i round_eight(const GemmQ8Rows& t, const FinishConstants& c,
                                                          const FinishedRows& to, int row, int i, __m256i sums) {
  if constexpr (kFinish == Finish::kAny) return round_scaled(sums, c.scale[i], *t.requantize);
  const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), c.scale[i]);
  if constexpr (kFinish != Finish::kAdd) return _mm256_cvtps_epi32(scaled);
  return add_directly(scaled, to.residual[row] + to.channel + 8 * i, c.add);
}

// Packs four vectors of whole numbers to bytes: 16 columns of two rows, or 8 of four.
inline __attribute__((always_inline)) __m256i pack_bytes(const FinishConstants& c, const __m256i (&v)[4]) {
  const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(v[0], v[1]), c.range.zero);
  const __m256i high = _mm256_adds_epi16(_mm256_packs_epi32(v[2], v[3]), c.range.zero);
  const __m256i bytes = _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(low, high), c.range.least), c.range.most);
  return _mm256_permutevar8x32_epi32(bytes, c.order);
}

template <int kVectors, Finish kFinish>
inline __attribute__((always_inline)) void store_row(const GemmQ8Rows& t, const FinishedRows& to, int row,
                                                     __m128i bytes) {
  uint8_t* y = to.y[row] + to.channel;
  if constexpr (kFinish == Finish::kAny) {
    const RequantizeQ8& p = *t.requantize;
    finish_16(bytes, {y, p.add ? to.residual[row] + to.channel : nullptr}, 0, t.columns, p);
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
  const FinishedRows to(t, first);
  __m256i bytes[kCount];
#pragma GCC unroll 3
  for (int n = 0; n < kCount; ++n) {
    __m256i four[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const int row = n * kStep + i / kVectors < kRows ? n * kStep + i / kVectors : kRows - 1;
      four[i] = round_eight<kFinish>(t, c, to, row, i % kVectors, sums[row][i % kVectors]);
    }
    bytes[n] = pack_bytes(c, four);
  }
  if (kFinish == Finish::kTable || (kFinish == Finish::kAny && t.requantize->lut != nullptr)) {
    look_up_each(bytes, t.requantize->lut_steps);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const __m256i both = bytes[r / kStep];
    const bool upper = r % kStep * kVectors >= 2;
    const __m128i half = upper ? _mm256_extracti128_si256(both, 1) : _mm256_castsi256_si128(both);
    store_row<kVectors, kFinish>(t, to, r, kVectors == 1 && r % 2 == 1 ? _mm_unpackhi_epi64(half, half) : half);
  }
}

}  // namespace
}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX2_H_
