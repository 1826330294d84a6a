// Up to 4 panels of 16 columns and as many tiles as 32 registers allow by vpdpwssd on pairs of channels. Transforms
// take 32 channels, and 16 columns, at a time.
#include <immintrin.h>

#include <cstring>

#include "kernels/gemm/finish_rows_avx512_vnni.h"
#include "kernels/gemm/sweep_rows.h"
#include "kernels/winograd/lanes_avx2.h"
#include "kernels/winograd/transforms.h"
#include "kernels/winograd/winograd_q8.h"

namespace edgekit::avx512_vnni {
namespace {

struct Lanes16 {
  using Vector = __m512i;
  static constexpr int kCount = 32;
  static __m512i load_bytes(const uint8_t* x) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  static __m512i load_taps(const int8_t* w) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  }
  static void store(void* to, __m512i v) { _mm512_storeu_si512(to, v); }
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi16(a, b); }
  static __m512i sub(__m512i a, __m512i b) { return _mm512_sub_epi16(a, b); }
  static __m512i shl(__m512i a, unsigned count) { return _mm512_slli_epi16(a, count); }
};
struct Lanes32 {
  using Vector = __m512i;
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  static __m512i sub(__m512i a, __m512i b) { return _mm512_sub_epi32(a, b); }
  static __m512i shl(__m512i a, unsigned count) { return _mm512_slli_epi32(a, count); }
};

void expand(const WinogradQ8Weights& weights) noexcept { expand_weights<Lanes16>(weights); }

void transform(const WinogradQ8Patch& patch) noexcept {
  int64_t channel = 0;
  for (; channel + Lanes16::kCount <= patch.channels; channel += Lanes16::kCount) {
    transform_channels<Lanes16>(patch, channel);
  }
  if (channel < patch.channels) transform_channels<avx2::Lanes16>(patch, channel);  // half a vector is left
}

// sums += the products of a pair in each lane; in assembly as dot_add is.
inline void dot_add_pairs(__m512i& sums, __m512i v, __m512i u) {
#if defined(EDGEKIT_SIMDE)
  sums = _mm512_dpwssd_epi32(sums, v, u);
#else
  asm("vpdpwssd %[u], %[v], %[sums]" : [sums] "+v"(sums) : [v] "v"(v), [u] "v"(u));
#endif
}

inline __m512i pair_of(const int16_t* at) {
  int32_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

// Sums of a tile, vectors of weights and one pair of v fit 32 registers.
template <int kPanels>
constexpr int kMostTiles = kPanels == 1   ? 16
                           : kPanels == 2 ? 14
                           : kPanels == 3 ? 8
                                          : 6;

// One position.
template <int kPanels>
struct PositionTile {
  const WinogradQ8Product& t;
  const int16_t* v;
  const int32_t* u;
  int32_t* m;

  // A function of its own: GCC 12 spills in some of its copies otherwise.
  template <int kTiles>
  __attribute__((noinline)) void run(int64_t first) const {
    __m512i sums[kTiles][kPanels];
#pragma GCC unroll 16
    for (int i = 0; i < kTiles; ++i) {
#pragma GCC unroll 4
      for (int panel = 0; panel < kPanels; ++panel) {
        const int32_t* from = m + panel * t.panel_step + (first + i) * kWinogradPositions * kWinogradColumns;
        sums[i][panel] = t.accumulate ? _mm512_loadu_si512(from) : _mm512_setzero_si512();
      }
    }
    const int16_t* row = v + first * t.tile_step;
    const int32_t* weights = u;
#pragma GCC unroll 1
    for (int64_t k = 0; k < t.pairs; ++k, row += 2, weights += kWinogradColumns) {
      __m512i columns[kPanels];
#pragma GCC unroll 4
      for (int panel = 0; panel < kPanels; ++panel)
        columns[panel] = _mm512_loadu_si512(weights + panel * t.u_panel_step);
#pragma GCC unroll 16
      for (int i = 0; i < kTiles; ++i) {
        const __m512i pair = pair_of(row + i * t.tile_step);
#pragma GCC unroll 4
        for (int panel = 0; panel < kPanels; ++panel) dot_add_pairs(sums[i][panel], pair, columns[panel]);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < kTiles; ++i) {
#pragma GCC unroll 4
      for (int panel = 0; panel < kPanels; ++panel) {
        int32_t* out = m + panel * t.panel_step + (first + i) * kWinogradPositions * kWinogradColumns;
        _mm512_storeu_si512(out, sums[i][panel]);
      }
    }
  }
};

template <int kPanels>
void multiply_panels(const WinogradQ8Product& t) {
  for (int c = 0; c < kWinogradIn; ++c) {
    const PositionTile<kPanels> tile{t, t.v + c * t.position_step, t.u + c * t.u_column_step,
                                     t.m + c * kWinogradColumns};
    sweep_rows<kMostTiles<kPanels>>(tile, t.tiles);
  }
}

void multiply(const WinogradQ8Product& t) noexcept {
  switch (t.panels) {
    case 1:
      return multiply_panels<1>(t);
    case 2:
      return multiply_panels<2>(t);
    case 3:
      return multiply_panels<3>(t);
    default:
      return multiply_panels<4>(t);
  }
}

// The division, and the bias.
template <int kShift>
inline __m512i unscaled(__m512i sum, __m512i bias) {
  const __m512i scaled = _mm512_mullo_epi32(sum, _mm512_set1_epi32(static_cast<int32_t>(kInverseOfNine)));
  return _mm512_add_epi32(_mm512_srai_epi32(scaled, kShift), bias);
}

// Line kRow of a tile's pixels, from the lines of A m in `half`.
template <int kRow>
inline __attribute__((always_inline)) void finish_pixels(const GemmQ8Rows& t, int64_t first, __m512i bias,
                                                         const __m512i (&half)[kWinogradOut][kWinogradIn]) {
  constexpr int kShift = kWinogradShifts[kRow];
  __m512i pixels[kWinogradOut];
  finish_line<Lanes32>(half[kRow], pixels);
  const __m512i sums[kWinogradOut][1] = {{unscaled<kShift + kWinogradShifts[0]>(pixels[0], bias)},
                                         {unscaled<kShift + kWinogradShifts[1]>(pixels[1], bias)},
                                         {unscaled<kShift + kWinogradShifts[2]>(pixels[2], bias)},
                                         {unscaled<kShift + kWinogradShifts[3]>(pixels[3], bias)}};
  finish_rows<kWinogradOut, 1>(t, first + kRow * kWinogradOut, sums);
}

void finish(const int32_t* m, const GemmQ8Rows& t) noexcept {
  constexpr int kRowStep = kWinogradIn * kWinogradColumns;
  const __m512i bias = _mm512_loadu_si512(t.bias);
  for (int64_t first = 0; first < t.rows; first += kWinogradPixels, m += kWinogradPositions * kWinogradColumns) {
    __m512i half[kWinogradOut][kWinogradIn];
#pragma GCC unroll 1
    for (int c = 0; c < kWinogradIn; ++c) {
      __m512i line[kWinogradIn], sums[kWinogradOut];
#pragma GCC unroll 6
      for (int r = 0; r < kWinogradIn; ++r) line[r] = _mm512_loadu_si512(m + r * kRowStep + c * kWinogradColumns);
      finish_line<Lanes32>(line, sums);
#pragma GCC unroll 4
      for (int r = 0; r < kWinogradOut; ++r) half[r][c] = sums[r];
    }
    finish_pixels<0>(t, first, bias, half);
    finish_pixels<1>(t, first, bias, half);
    finish_pixels<2>(t, first, bias, half);
    finish_pixels<3>(t, first, bias, half);
  }
}

}  // namespace

const WinogradQ8Kernels& winograd_q8_kernels() {
  static constexpr WinogradQ8Kernels kKernels{"winograd_u8s8_4x4_avx512_vnni", 4, expand, transform, multiply, finish};
  return kKernels;
}

}  // namespace edgekit::avx512_vnni
