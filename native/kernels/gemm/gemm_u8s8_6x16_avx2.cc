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

template <int kRows>
inline void multiply(const GemmQ8Tile& t, Sums16 (&sums)[kRows]) {
  const auto* bias = reinterpret_cast<const __m256i*>(t.bias);
  const char* a[kRows];
  for (int r = 0; r < kRows; ++r) {
    sums[r] = {_mm256_loadu_si256(bias), _mm256_loadu_si256(bias + 1)};
    a[r] = static_cast<const char*>(t.a[r]);
  }
  const int8_t* b = t.b;
  for (int64_t group = 0; group < t.depth_groups; ++group, b += 32) {
    const __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
    const __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 16)));
    for (int r = 0; r < kRows; ++r) {
      int32_t bits;
      std::memcpy(&bits, a[r] + 4 * group, sizeof(bits));
      const __m256i pair = _mm256_set1_epi32(bits);
      sums[r].low = _mm256_add_epi32(sums[r].low, _mm256_madd_epi16(pair, low));
      sums[r].high = _mm256_add_epi32(sums[r].high, _mm256_madd_epi16(pair, high));
    }
  }
}

// Requantizes two rows (the same one twice if only one is left) and stores them.
inline void finish_rows(const GemmQ8Tile& t, const Sums16& a, const Sums16& b, int row, bool both) {
  const RequantizeQ8& p = *t.requantize;
  const __m256 low = _mm256_loadu_ps(t.scale);
  const __m256 high = _mm256_loadu_ps(t.scale + 8);
  __m256i bytes = pack_pair(round_scaled(a.low, low, p), round_scaled(a.high, high, p), round_scaled(b.low, low, p),
                            round_scaled(b.high, high, p), p);
  if (p.lut != nullptr) bytes = look_up(bytes, p.lut_steps);
  bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  const auto target = [&](int r) { return Target16{t.y[r] + t.channel, p.add ? t.residual[r] + t.channel : nullptr}; };
  finish_16(_mm256_castsi256_si128(bytes), target(row), 0, t.columns, p);
  if (both) finish_16(_mm256_extracti128_si256(bytes, 1), target(row + 1), 0, t.columns, p);
}

template <int kRows>
void tile(const GemmQ8Tile& t) {
  Sums16 sums[kRows];
  multiply<kRows>(t, sums);
  for (int r = 0; r + 1 < kRows; r += 2) finish_rows(t, sums[r], sums[r + 1], r, true);
  if constexpr (kRows % 2 == 1) finish_rows(t, sums[kRows - 1], sums[kRows - 1], kRows - 1, false);
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
