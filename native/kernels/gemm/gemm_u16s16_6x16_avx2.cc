// 6 rows x 16 columns, or 8 x 8, of words: vpmaddwd multiplies and adds pairs exactly. 12 sums, 2 vectors of B, 2 words
// of A and a product fill the 16 registers.
#include <immintrin.h>

#include <cstring>

#include "kernels/gemm/conv_q8_words.h"
#include "kernels/gemm/finish_rows_avx2.h"
#include "kernels/gemm/sweep_rows.h"

namespace edgekit::avx2 {
namespace {

// sum += two products of a and b in each lane. In assembly, as in the products of bytes.
inline __attribute__((always_inline)) void multiply_add(__m256i& sum, __m256i a, __m256i b) {
  __m256i product;
  asm("vpmaddwd %[b], %[a], %[product]\n\t"
      "vpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [a] "x"(a), [b] "x"(b));
}

inline __m256i two_words(const uint8_t* at) {
  int32_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return _mm256_set1_epi32(bits);
}

// sums[r][i]: columns 8i to 8i + 7 of row first + r.
template <int kRows, int kVectors>
inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first,
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
      const __m256i two = two_words(a[r] + *offset);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) multiply_add(sums[r][i], two, columns[i]);
    }
  }
}

template <int kVectors, Finish kFinish>
struct Tile {
  const GemmQ8Rows& t;
  const FinishConstants constants;

  explicit Tile(const GemmQ8Rows& rows) : t(rows), constants(rows) {}

  template <int kRows>
  void run(int64_t first) const {
    __m256i sums[kRows][kVectors];
    multiply<kRows, kVectors>(t, first, sums);
    finish_rows<kRows, kVectors, kFinish>(t, constants, first, sums);
  }
};

template <int kMostRows, int kVectors>
void sweep(const GemmQ8Rows& t) {
  const Finish finish = finish_of(t);
  if (finish == Finish::kPlain) return sweep_rows<kMostRows>(Tile<kVectors, Finish::kPlain>(t), t.rows);
  if (finish == Finish::kTable) return sweep_rows<kMostRows>(Tile<kVectors, Finish::kTable>(t), t.rows);
  sweep_rows<kMostRows>(Tile<kVectors, Finish::kAny>(t), t.rows);
}

}  // namespace

void gemm_u16s16_6x16_avx2(const GemmQ8Rows& t) noexcept { t.columns > 8 ? sweep<6, 2>(t) : sweep<8, 1>(t); }

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
