// 6 rows x 16 columns. A is packed as i16 pairs, weights are widened as they are read, and vpmaddwd multiplies and adds
// a pair: exact for every value, and as fast at its best (32 multiply-accumulates a cycle) as the form with vpmaddubsw
// that saturates. 12 accumulators, 2 of B, 1 of A and 1 product fill the 16 registers.
#include <immintrin.h>

#include <cstring>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/pack_rows.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {
namespace {

struct WidenCopy {
  using Element = int16_t;

  static void run(int16_t* out, const uint8_t* in, int64_t count, const uint8_t* end) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) widen_16(out + i, in + i);
    if (i == count) return;
    if (end - (in + i) >= 16) return widen_16(out + i, in + i);
    for (; i < count; ++i) out[i] = in[i];
  }
  static void fill(int16_t* out, int32_t value, int64_t count) {
    const __m256i all = _mm256_set1_epi16(static_cast<int16_t>(value));
    for (int64_t i = 0; i < count; i += 16) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), all);
  }

 private:
  static void widen_16(int16_t* out, const uint8_t* in) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_cvtepu8_epi16(bytes));
  }
};

// sum += pairs of a times pairs of b. In assembly, since GCC 12 otherwise renames the 12 sums until some live in
// memory.
inline void multiply_add(__m256i& sum, __m256i a, __m256i b) {
  __m256i product;
  asm("vpmaddwd %[b], %[a], %[product]\n\t"
      "vpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [a] "x"(a), [b] "x"(b));
}

// low: sums of columns 0-7, high: of columns 8-15.
template <int kRows>
inline __attribute__((always_inline)) void multiply(const GemmQ8Tile& t, __m256i (&low)[kRows],
                                                    __m256i (&high)[kRows]) {
  const char* a[kRows];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    low[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias));
    high[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias + 8));
    a[r] = static_cast<const char*>(t.a[r]);
  }
  const int8_t* b = t.b;
  for (int64_t group = 0; group < t.depth_groups; ++group, b += 32) {
    const __m256i b_low = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
    const __m256i b_high = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 16)));
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int32_t bits;
      std::memcpy(&bits, a[r] + 4 * group, sizeof(bits));
      const __m256i pair = _mm256_set1_epi32(bits);
      multiply_add(low[r], pair, b_low);
      multiply_add(high[r], pair, b_high);
    }
  }
}

// Requantizes two rows and stores them, or only the first.
inline __attribute__((always_inline)) void finish_rows(const GemmQ8Tile& t, const __m256i (&sums)[4], int row,
                                                       bool both) {
  const RequantizeQ8& p = *t.requantize;
  const __m256 low = _mm256_loadu_ps(t.scale);
  const __m256 high = _mm256_loadu_ps(t.scale + 8);
  __m256i bytes = pack_pair(round_scaled(sums[0], low, p), round_scaled(sums[1], high, p),
                            round_scaled(sums[2], low, p), round_scaled(sums[3], high, p), p);
  if (p.lut != nullptr) bytes = look_up(bytes, p.lut_steps);
  bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  const auto target = [&](int r) { return Target16{t.y[r] + t.channel, p.add ? t.residual[r] + t.channel : nullptr}; };
  finish_16(_mm256_castsi256_si128(bytes), target(row), 0, t.columns, p);
  if (both) finish_16(_mm256_extracti128_si256(bytes, 1), target(row + 1), 0, t.columns, p);
}

template <int kRows>
void tile(const GemmQ8Tile& t) {
  __m256i low[kRows], high[kRows];
  multiply<kRows>(t, low, high);
#pragma GCC unroll 3
  for (int r = 0; r < kRows; r += 2) {
    const int other = r + 1 < kRows ? r + 1 : r;
    const __m256i sums[4] = {low[r], high[r], low[other], high[other]};
    finish_rows(t, sums, r, other != r);
  }
}

}  // namespace

void gemm_u8s8_6x16_avx2(const GemmQ8Tile& t) noexcept {
  switch (t.rows) {
    case 1:
      return tile<1>(t);
    case 2:
      return tile<2>(t);
    case 3:
      return tile<3>(t);
    case 4:
      return tile<4>(t);
    case 5:
      return tile<5>(t);
    default:
      return tile<6>(t);
  }
}

void pack_rows_gemm_u8s8_6x16_avx2(const ConvQ8Source& source, int64_t group, int64_t first, int64_t count,
                                   void* out) noexcept {
  pack_rows<WidenCopy>(source, group, first, count, out);
}

}  // namespace edgekit::avx2
