// 6 tiles x 16 columns by vpmaddwd on pairs of channels: 12 sums, 2 vectors of weights, a pair of v and a product fill
// the 16 registers. Transforms take 16 channels, and 16 columns, at a time.
#include <immintrin.h>

#include "kernels/gemm/finish_rows_avx2.h"
#include "kernels/gemm/sweep_rows.h"
#include "kernels/simd/products_avx2.h"
#include "kernels/winograd/lanes_avx2.h"
#include "kernels/winograd/transforms.h"
#include "kernels/winograd/winograd_q8.h"

namespace edgekit::avx2 {
namespace {

struct Lanes32 {
  using Vector = __m256i;
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
  static __m256i sub(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }
  static __m256i shl(__m256i a, int count) { return _mm256_slli_epi32(a, count); }
};

void transform(const WinogradQ8Patch& patch) noexcept {
  for (int64_t channel = 0; channel < patch.channels; channel += Lanes16::kCount) {
    transform_channels<Lanes16>(patch, channel);
  }
}

void expand(const WinogradQ8Weights& weights) noexcept { expand_weights<Lanes16>(weights); }

// Tiles first to first + kTiles - 1 of one position.
struct PositionTile {
  const WinogradQ8Product& t;
  const int16_t* v;
  const int32_t* u;
  int32_t* m;

  // A function of its own: GCC 12 spills in some of its copies otherwise.
  template <int kTiles>
  __attribute__((noinline)) void run(int64_t first) const {
    __m256i sums[kTiles][2];
    const int16_t* at[kTiles];
#pragma GCC unroll 6
    for (int i = 0; i < kTiles; ++i) {
      const int32_t* from = m + (first + i) * kWinogradPositions * kWinogradColumns;
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        sums[i][half] = t.accumulate ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 8 * half))
                                     : _mm256_setzero_si256();
      }
      at[i] = v + (first + i) * t.tile_step;
    }
    const auto* weights = reinterpret_cast<const __m256i*>(u);
#pragma GCC unroll 1
    for (int64_t k = 0; k < t.pairs; ++k, weights += 2) {
      const __m256i low = _mm256_loadu_si256(weights);
      const __m256i high = _mm256_loadu_si256(weights + 1);
#pragma GCC unroll 6
      for (int i = 0; i < kTiles; ++i) {
        const __m256i pair = broadcast_dword(at[i] + 2 * k);
        multiply_add_words(sums[i][0], pair, low);
        multiply_add_words(sums[i][1], pair, high);
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < kTiles; ++i) {
      auto* out = reinterpret_cast<__m256i*>(m + (first + i) * kWinogradPositions * kWinogradColumns);
      _mm256_storeu_si256(out, sums[i][0]);
      _mm256_storeu_si256(out + 1, sums[i][1]);
    }
  }
};

void multiply(const WinogradQ8Product& t) noexcept {
  for (int c = 0; c < kWinogradIn; ++c) {
    sweep_rows<6>(PositionTile{t, t.v + c * t.position_step, t.u + c * t.u_column_step, t.m + c * kWinogradColumns},
                  t.tiles);
  }
}

// The lines of A m of one tile, in memory: 16 columns by 6.
using HalfFinished = __m256i[kWinogradOut][kWinogradIn][2];

inline __attribute__((always_inline)) void finish_columns(const int32_t* m, HalfFinished& half) {
  constexpr int kRowStep = kWinogradIn * kWinogradColumns;
  for (int c = 0; c < kWinogradIn; ++c) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      __m256i line[kWinogradIn], sums[kWinogradOut];
#pragma GCC unroll 6
      for (int r = 0; r < kWinogradIn; ++r) {
        line[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(m + r * kRowStep + c * kWinogradColumns + 8 * i));
      }
      finish_line<Lanes32>(line, sums);
#pragma GCC unroll 4
      for (int r = 0; r < kWinogradOut; ++r) half[r][c][i] = sums[r];
    }
  }
}

// The division, and the bias.
inline __m256i unscaled(__m256i sum, int shift, __m256i bias) {
  const __m256i scaled = _mm256_mullo_epi32(sum, _mm256_set1_epi32(static_cast<int32_t>(kInverseOfNine)));
  return _mm256_add_epi32(_mm256_sra_epi32(scaled, _mm_cvtsi32_si128(shift)), bias);
}

template <Finish kFinish>
void finish_tiles(const int32_t* m, const GemmQ8Rows& t) {
  const FinishConstants constants(t, kFinish);
  __m256i bias[2];
  for (int i = 0; i < 2; ++i) bias[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias + 8 * i));
  HalfFinished half;
  for (int64_t first = 0; first < t.rows; first += kWinogradPixels) {
    finish_columns(m, half);
    m += kWinogradPositions * kWinogradColumns;
    for (int r = 0; r < kWinogradOut; ++r) {
      __m256i sums[kWinogradOut][2];
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        __m256i line[kWinogradIn], pixels[kWinogradOut];
#pragma GCC unroll 6
        for (int c = 0; c < kWinogradIn; ++c) line[c] = half[r][c][i];
        finish_line<Lanes32>(line, pixels);
#pragma GCC unroll 4
        for (int c = 0; c < kWinogradOut; ++c) {
          sums[c][i] = unscaled(pixels[c], kWinogradShifts[r] + kWinogradShifts[c], bias[i]);
        }
      }
      finish_rows<kWinogradOut, 2, kFinish>(t, constants, first + r * kWinogradOut, sums);
    }
  }
}

void finish(const int32_t* m, const GemmQ8Rows& t) noexcept {
  const Finish kind = t.columns == kWinogradColumns ? finish_of(t) : Finish::kAny;
  switch (kind) {
    case Finish::kPlain:
      return finish_tiles<Finish::kPlain>(m, t);
    case Finish::kTable:
      return finish_tiles<Finish::kTable>(m, t);
    case Finish::kAdd:
      return finish_tiles<Finish::kAdd>(m, t);
    case Finish::kAny:
      return finish_tiles<Finish::kAny>(m, t);
  }
}

}  // namespace

const WinogradQ8Kernels& winograd_q8_kernels() {
  static constexpr WinogradQ8Kernels kKernels{"winograd_u8s8_4x4_avx2", 1, expand, transform, multiply, finish};
  return kKernels;
}

}  // namespace edgekit::avx2
