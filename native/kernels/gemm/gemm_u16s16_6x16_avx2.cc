// 6 rows x 16 columns, or 8 x 8, of words: vpmaddwd multiplies and adds pairs exactly. 12 sums, 2 vectors of B, 2 words
// of A and a product fill the 16 registers.
#include <immintrin.h>

#include <cstring>

#include "kernels/gemm/conv_q8_words.h"
#include "kernels/gemm/sweep_tiles_avx2.h"
#include "kernels/simd/products_avx2.h"

namespace edgekit::avx2 {
namespace {

struct Products {
  // sums[r][i]: columns 8i to 8i + 7 of row first + r.
  template <int kRows, int kVectors>
  static inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first,
                                                             __m256i (&sums)[kRows][kVectors]) {
    const uint8_t* a[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      a[r] = t.a[first + r];
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i)
        sums[r][i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias + 8 * i));
    }
    const int8_t* b = t.b;
    const int64_t* end = t.offsets + t.depth_groups;
    for (const int64_t* offset = t.offsets; offset != end; ++offset, b += 64) {
      __m256i columns[kVectors];
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) columns[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 32 * i));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i two = broadcast_dword(a[r] + *offset);
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) multiply_add_words(sums[r][i], two, columns[i]);
      }
    }
  }
};

}  // namespace

void gemm_u16s16_6x16_avx2(const GemmQ8Rows& t) noexcept {
  t.columns > 8 ? sweep_tiles<Products, 6, 2>(t) : sweep_tiles<Products, 8, 1>(t);
}

void widen_avx2(const uint8_t* from, int64_t from_step, int64_t pixels, int64_t channels, uint16_t* to,
                int64_t to_step) noexcept {
  for (; pixels > 0; --pixels, from += from_step, to += to_step) {
    int64_t c = 0;
    for (; c + 16 <= channels; c += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + c));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + c), _mm256_cvtepu8_epi16(bytes));
    }
    if (c + 8 <= channels) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + c));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + c), _mm_cvtepu8_epi16(bytes));
      c += 8;
    }
    for (; c < channels; ++c) to[c] = from[c];
  }
}

}  // namespace edgekit::avx2
