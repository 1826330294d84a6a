// 6 rows x 16 columns. vpmaddubsw multiplies bytes and adds pairs into 16 bits, which saturates; the pairs of this
// packing never reach that (see saturating_pairs in the schema), so the sums are exact. 12 sums, the ones, 4 bytes of A
// and products fill the 16 registers; B comes from memory.
#include <immintrin.h>

#include <cstring>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_rows.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {
namespace {

// sum += four products of a and b in each lane. In assembly, since GCC 12 otherwise renames the 12 sums until some live
// in memory.
inline __attribute__((always_inline)) void multiply_add(__m256i& sum, __m256i a, const int8_t* b, __m256i ones) {
  __m256i product;
  asm("vpmaddubsw %[b], %[a], %[product]\n\t"
      "vpmaddwd %[ones], %[product], %[product]\n\t"
      "vpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [a] "x"(a), [b] "m"(*reinterpret_cast<const __m256i_u*>(b)), [ones] "x"(ones));
}

// sums[r][i]: columns 8i to 8i + 7 of row first + r.
template <int kRows, int kVectors>
inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first,
                                                    __m256i (&sums)[kRows][kVectors]) {
  const uint8_t* a[kRows];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    a[r] = t.a[first + r];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) sums[r][i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias + 8 * i));
  }
  const __m256i ones = _mm256_set1_epi16(1);
  const int8_t* b = t.b;
  const int64_t* end = t.offsets + t.depth_groups;
  for (const int64_t* offset = t.offsets; offset != end; ++offset, b += 64) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int32_t bits;
      std::memcpy(&bits, a[r] + *offset, sizeof(bits));
      const __m256i four = _mm256_set1_epi32(bits);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) multiply_add(sums[r][i], four, b + 32 * i, ones);
    }
  }
}

// Four vectors of sums to the bytes of y before any residual: 16 columns of two rows, or 8 of four.
template <int kVectors>
inline __attribute__((always_inline)) __m256i requantize(const GemmQ8Rows& t, const __m256i (&sums)[4]) {
  const RequantizeQ8& p = *t.requantize;
  const __m256 low = _mm256_loadu_ps(t.scale);
  const __m256 high = kVectors == 2 ? _mm256_loadu_ps(t.scale + 8) : low;
  __m256i bytes = pack_pair(round_scaled(sums[0], low, p), round_scaled(sums[1], high, p),
                            round_scaled(sums[2], low, p), round_scaled(sums[3], high, p), p);
  if (p.lut != nullptr) bytes = look_up(bytes, p.lut_steps);
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

inline void store_row(const GemmQ8Rows& t, int64_t row, __m128i bytes) {
  const RequantizeQ8& p = *t.requantize;
  finish_16(bytes, {t.y[row] + t.channel, p.add ? t.residual[row] + t.channel : nullptr}, 0, t.columns, p);
}

template <int kVectors>
struct Tile {
  template <int kRows>
  static void run(const GemmQ8Rows& t, int64_t first) {
    __m256i sums[kRows][kVectors];
    multiply<kRows, kVectors>(t, first, sums);
    constexpr int kStep = 4 / kVectors;
#pragma GCC unroll 3
    for (int r = 0; r < kRows; r += kStep) {
      __m256i four[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) four[i] = sums[r + i / kVectors < kRows ? r + i / kVectors : r][i % kVectors];
      const __m256i bytes = requantize<kVectors>(t, four);
      const __m128i halves[2] = {_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1)};
#pragma GCC unroll 4
      for (int i = 0; i < kStep; ++i) {
        if (r + i >= kRows) break;
        const __m128i half = halves[i * kVectors / 2];
        store_row(t, first + r + i, kVectors == 1 && i % 2 == 1 ? _mm_unpackhi_epi64(half, half) : half);
      }
    }
  }
};

}  // namespace

void gemm_u8s8_6x16_avx2(const GemmQ8Rows& t) noexcept {
  if (t.columns <= 8) return sweep_rows<Tile<1>, 6>(t);
  sweep_rows<Tile<2>, 6>(t);
}

}  // namespace edgekit::avx2
