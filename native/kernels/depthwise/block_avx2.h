// What the AVX2 depthwise kernels share: a block of 16 channels, its packed weights, and the way to y. Only for
// *_avx2.cc.
//
// Bytes of 16 channels are widened to i16 and interleaved with those of another tap: vpunpcklwd gives (tap, tap') pairs
// of channels 0-3 and 8-11 ("low"), vpunpckhwd of 4-7 and 12-15 ("high"); vpmaddwd with pairs of weights then adds two
// taps a channel, exactly. The packs of the epilogue undo the order.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_BLOCK_AVX2_H_
#define EDGEKIT_KERNELS_DEPTHWISE_BLOCK_AVX2_H_

#include <immintrin.h>

#include "kernels/depthwise/depthwise_q8.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {

inline constexpr int kBlockChannels = 16;

// Pairs of two taps, or of two weights, of 16 channels.
struct Pairs {
  __m256i low, high;
};

// A block's packed weights: bias and scale in the order of the sums, then pairs of weights.
struct PackedBlock {
  int32_t bias[16];
  float scale[16];
  int16_t pairs[];  // 32 for each pair of taps: low, high
};

inline __m256i widen_16(const uint8_t* at) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}

inline Pairs interleave(__m256i first, __m256i second) {
  return {_mm256_unpacklo_epi16(first, second), _mm256_unpackhi_epi16(first, second)};
}

// The sums of channels low and high, as they start.
inline void start_sums(const PackedBlock& block, __m256i& low, __m256i& high) {
  low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.bias));
  high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.bias + 8));
}

// Sums += taps * the block's pair number `pair`.
inline void multiply_add(__m256i& low, __m256i& high, const Pairs& taps, const PackedBlock& block, int pair) {
  const auto* weights = reinterpret_cast<const __m256i*>(block.pairs) + 2 * pair;
  low = _mm256_add_epi32(low, _mm256_madd_epi16(taps.low, _mm256_loadu_si256(weights)));
  high = _mm256_add_epi32(high, _mm256_madd_epi16(taps.high, _mm256_loadu_si256(weights + 1)));
}

// Where channel c of a block stands in bias, scale and the pairs: low holds 0-3 and 8-11, high the others.
inline int slot_of(int c) { return (c & 4) * 2 + (c & 3) + (c & 8) / 2; }

// pair_taps[i] = the two taps (ky * kernel_w + kx) of pair i; -1: a weight of 0.
inline void pack_block(const DepthwiseQ8Weights& w, int32_t first, int32_t n, const int (*pair_taps)[2], int pair_count,
                       PackedBlock& block) {
  for (int c = 0; c < kBlockChannels; ++c) {
    const int slot = slot_of(c);
    block.bias[slot] = c < n ? w.bias[first + c] : 0;
    block.scale[slot] = c < n ? w.scale[first + c] : 0.0f;
    for (int pair = 0; pair < pair_count; ++pair) {
      for (int side = 0; side < 2; ++side) {
        const int tap = pair_taps[pair][side];
        const bool real = c < n && tap >= 0;
        block.pairs[pair * 32 + slot * 2 + side] = real ? w.w[int64_t{tap} * w.channels + first + c] : int16_t{0};
      }
    }
  }
}

inline size_t packed_block_bytes(size_t pair_count) {
  return (sizeof(PackedBlock) + pair_count * 32 * sizeof(int16_t) + 63) / 64 * 64;
}

// Requantizes output pixels ox and ox + 1 of row 0 and stores both, or only the first.
inline __attribute__((always_inline)) void finish_pixels(const DepthwiseQ8Strip& s, const __m256i (&sums)[4],
                                                         int32_t ox, bool both) {
  const RequantizeQ8& p = *s.requantize;
  const auto& block = *static_cast<const PackedBlock*>(s.packed);
  const __m256 low = _mm256_loadu_ps(block.scale);
  const __m256 high = _mm256_loadu_ps(block.scale + 8);
  __m256i bytes = pack_pair(round_scaled(sums[0], low, p), round_scaled(sums[1], high, p),
                            round_scaled(sums[2], low, p), round_scaled(sums[3], high, p), p);
  if (p.lut != nullptr) bytes = look_up(bytes, p.lut_steps);
  // [a0-7 b0-7 | a8-15 b8-15] to a, b.
  bytes = _mm256_permute4x64_epi64(bytes, 0xD8);
  const auto target = [&](int32_t x) {
    return Target16{s.y[0] + x * s.y_step, p.add ? s.residual[0] + x * s.residual_step : nullptr};
  };
  finish_16(_mm256_castsi256_si128(bytes), target(ox), s.first, s.count, p);
  if (both) finish_16(_mm256_extracti128_si256(bytes, 1), target(ox + 1), s.first, s.count, p);
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

// Walks a window over one output row, two pixels at a time. Window(strip) reads the columns left of the first pixel's
// new ones; step(columns, block, low, high) takes the new ones (kColumns of kRows rows) and gives a pixel's sums.
template <typename Window>
inline __attribute__((always_inline)) void walk_row(const DepthwiseQ8Strip& s) {
  constexpr int kColumns = Window::kColumns;
  const auto& block = *static_cast<const PackedBlock*>(s.packed);
  Window window(s);
  int64_t ix = Window::kOldColumns - int64_t{s.window.pad_left};
  for (int32_t ox = 0; ox < s.out_w; ox += 2, ix += 2 * kColumns) {
    __m256i sums[4];
    Column<Window::kRows> columns[2 * kColumns];
    if (ix >= 0 && ix + 2 * kColumns <= s.w) {
      inner_columns(s, ix, columns);
      window.step(columns, block, sums[0], sums[1]);
      window.step(columns + kColumns, block, sums[2], sums[3]);
    } else {
      border_columns(s, ix, columns);
      window.step(columns, block, sums[0], sums[1]);
      window.step(columns + kColumns, block, sums[2], sums[3]);
    }
    finish_pixels(s, sums, ox, ox + 1 < s.out_w);
  }
}

}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_DEPTHWISE_BLOCK_AVX2_H_
