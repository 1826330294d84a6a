// What the AVX2 depthwise kernels of 8 channels share: pairs of taps, packed weights, and the way of four pixels to y.
// Only for *_avx2.cc.
//
// A pair holds two taps of 8 channels as i16, channel by channel; vpmaddwd with a pair of weights adds both, exactly. A
// tap alone is its bytes widened to 32 bits, which is a pair with 0.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_PIXELS_AVX2_H_
#define EDGEKIT_KERNELS_DEPTHWISE_PIXELS_AVX2_H_

#include <immintrin.h>

#include <cstring>

#include "kernels/depthwise/depthwise_q8.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {

inline constexpr int kPixelChannels = 8;

struct PackedPixels {
  int32_t bias[8];
  float scale[8];
  int16_t pairs[];  // 16 for each pair of taps: (tap, tap') of channel 0, of channel 1, ...
};

inline __m128i load_8(const uint8_t* at) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)); }

inline __m256i pair_of(const uint8_t* first, const uint8_t* second) {
  return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(load_8(first), load_8(second)));
}

inline __m256i alone(const uint8_t* tap) { return _mm256_cvtepu8_epi32(load_8(tap)); }

inline __m256i weights_of(const PackedPixels& packed, int pair) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed.pairs) + pair);
}

inline __m256i bias_of(const PackedPixels& packed) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed.bias));
}

// pair_taps[i] = the two taps (ky * kernel_w + kx) of pair i; -1: none.
inline void pack_pixels(const DepthwiseQ8Weights& w, int32_t first, int32_t n, const int (*pair_taps)[2],
                        int pair_count, PackedPixels& packed) {
  for (int c = 0; c < kPixelChannels; ++c) {
    packed.bias[c] = c < n ? w.bias[first + c] : 0;
    packed.scale[c] = c < n ? w.scale[first + c] : 0.0f;
    for (int pair = 0; pair < pair_count; ++pair) {
      for (int side = 0; side < 2; ++side) {
        const int tap = pair_taps[pair][side];
        const bool real = c < n && tap >= 0;
        packed.pairs[pair * 16 + c * 2 + side] = real ? w.w[int64_t{tap} * w.channels + first + c] : int16_t{0};
      }
    }
  }
}

inline size_t packed_pixels_bytes(int pair_count) {
  return (sizeof(PackedPixels) + static_cast<size_t>(pair_count) * 16 * sizeof(int16_t) + 63) / 64 * 64;
}

// The rare ends of finish_pixels: a table, a residual, a block that is not written whole.
[[gnu::noinline]] inline void finish_pixels_fused(const DepthwiseQ8Strip& s, __m256i bytes, int32_t ox, int pixels) {
  const RequantizeQ8& p = *s.requantize;
  if (p.lut != nullptr) bytes = look_up(bytes, p.lut_steps);
  alignas(32) uint8_t all[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(all), bytes);
  for (int i = 0; i < pixels; ++i) {
    uint8_t* pixel = all + kPixelChannels * i;
    if (p.add) {
      alignas(16) uint8_t residual[16] = {};
      const uint8_t* from = s.residual[0] + (ox + i) * s.residual_step + s.first;
      std::memcpy(residual + s.first, from, static_cast<size_t>(s.count));
      const __m256i sum = add_8(load_8(pixel), load_8(residual), p.residual);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(pixel), bytes_of_16(sum, sum, p.residual.zero));
    }
    std::memcpy(s.y[0] + (ox + i) * s.y_step + s.first, pixel + s.first, static_cast<size_t>(s.count));
  }
}

// Requantizes four pixels and stores the first `pixels` of them at ox.
inline __attribute__((always_inline)) void finish_pixels(const DepthwiseQ8Strip& s, const __m256i (&sums)[4],
                                                         int32_t ox, int pixels) {
  const RequantizeQ8& p = *s.requantize;
  const __m256 scale = _mm256_loadu_ps(static_cast<const PackedPixels*>(s.packed)->scale);
  __m256i bytes = pack_pair(round_scaled(sums[0], scale, p), round_scaled(sums[1], scale, p),
                            round_scaled(sums[2], scale, p), round_scaled(sums[3], scale, p), p);
  bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  if (p.lut != nullptr || p.add || s.count != kPixelChannels || pixels != 4) {
    finish_pixels_fused(s, bytes, ox, pixels);
    return;
  }
  const __m128i low = _mm256_castsi256_si128(bytes);
  const __m128i high = _mm256_extracti128_si256(bytes, 1);
  uint8_t* y = s.y[0] + ox * s.y_step;
  _mm_storel_epi64(reinterpret_cast<__m128i*>(y), low);
  _mm_storeh_pd(reinterpret_cast<double*>(y + s.y_step), _mm_castsi128_pd(low));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(y + 2 * s.y_step), high);
  _mm_storeh_pd(reinterpret_cast<double*>(y + 3 * s.y_step), _mm_castsi128_pd(high));
}

// The pixels of one column in the input rows of a strip; outside the image they point at x_zero.
template <int kRows>
struct Column {
  const uint8_t* at[kRows];
};

template <int kRows>
inline Column<kRows> column_at(const DepthwiseQ8Strip& s, int64_t ix) {
  Column<kRows> column;
  const bool inside = static_cast<uint64_t>(ix) < static_cast<uint64_t>(s.w);
  for (int r = 0; r < kRows; ++r) column.at[r] = inside ? s.rows[r] + ix * s.steps[r] : s.zero;
  return column;
}

// The next kColumns columns from ix on. Inside the image their addresses are sums kept in registers.
template <int kRows, int kColumns>
inline __attribute__((always_inline)) void inner_columns(const DepthwiseQ8Strip& s, int64_t ix,
                                                         Column<kRows> (&columns)[kColumns]) {
#pragma GCC unroll 5
  for (int r = 0; r < kRows; ++r) {
    const uint8_t* at = s.rows[r] + ix * s.steps[r];
    const int64_t step = s.steps[r];
#pragma GCC unroll 8
    for (int i = 0; i < kColumns; ++i, at += step) {
      columns[i].at[r] = at;
      asm("" : "+r"(at));  // keeps GCC from computing addresses in vector registers
    }
  }
}

template <int kRows, int kColumns>
inline void border_columns(const DepthwiseQ8Strip& s, int64_t ix, Column<kRows> (&columns)[kColumns]) {
  for (int i = 0; i < kColumns; ++i) columns[i] = column_at<kRows>(s, ix + i);
}

// Four sums, from the columns that are new to each of four pixels.
template <typename Window, int kColumns>
inline __attribute__((always_inline)) void four_sums(Window& window, const Column<Window::kRows> (&columns)[kColumns],
                                                     const PackedPixels& packed, __m256i (&sums)[4]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) sums[i] = window.step(columns + i * Window::kColumns, packed);
}

// Walks a window over one output row, four pixels at a time. Window(strip) reads the columns left of the first pixel's
// new ones; step(columns, packed) takes the new ones (kColumns of kRows rows) and gives a pixel's sums.
template <typename Window>
inline __attribute__((always_inline)) void walk_pixels(const DepthwiseQ8Strip& s) {
  constexpr int kColumns = 4 * Window::kColumns;
  const auto& packed = *static_cast<const PackedPixels*>(s.packed);
  Window window(s);
  int64_t ix = Window::kOldColumns - int64_t{s.window.pad_left};
  for (int32_t ox = 0; ox < s.out_w; ox += 4, ix += kColumns) {
    __m256i sums[4];
    Column<Window::kRows> columns[kColumns];
    if (ix >= 0 && ix + kColumns <= s.w) {
      inner_columns(s, ix, columns);
      four_sums(window, columns, packed, sums);
    } else {
      border_columns(s, ix, columns);
      four_sums(window, columns, packed, sums);
    }
    finish_pixels(s, sums, ox, s.out_w - ox < 4 ? s.out_w - ox : 4);
  }
}

}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_DEPTHWISE_PIXELS_AVX2_H_
