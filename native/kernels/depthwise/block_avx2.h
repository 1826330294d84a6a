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

inline Sums16 load_bias(const PackedBlock& block) {
  const auto* bias = reinterpret_cast<const __m256i*>(block.bias);
  return {_mm256_loadu_si256(bias), _mm256_loadu_si256(bias + 1)};
}

// sums += taps * the block's pair number `pair`.
inline void multiply_add(Sums16& sums, const Pairs& taps, const PackedBlock& block, int pair) {
  const auto* weights = reinterpret_cast<const __m256i*>(block.pairs) + 2 * pair;
  sums.low = _mm256_add_epi32(sums.low, _mm256_madd_epi16(taps.low, _mm256_loadu_si256(weights)));
  sums.high = _mm256_add_epi32(sums.high, _mm256_madd_epi16(taps.high, _mm256_loadu_si256(weights + 1)));
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

// Requantizes and stores output pixels ox and, if `both`, ox + 1 of output row 0.
inline void finish_pixels(const DepthwiseQ8Strip& s, const Sums16& a, const Sums16& b, int32_t ox, bool both) {
  const RequantizeQ8& p = *s.requantize;
  const auto& block = *static_cast<const PackedBlock*>(s.packed);
  const __m256 low = _mm256_loadu_ps(block.scale);
  const __m256 high = _mm256_loadu_ps(block.scale + 8);
  __m256i bytes = pack_pair(round_scaled(a.low, low, p), round_scaled(a.high, high, p), round_scaled(b.low, low, p),
                            round_scaled(b.high, high, p), p);
  if (p.lut != nullptr) bytes = look_up(bytes, p.lut_steps);
  // [a0-7 b0-7 | a8-15 b8-15] to a, b.
  bytes = _mm256_permute4x64_epi64(bytes, 0xD8);
  const auto target = [&](int32_t x) {
    return Target16{s.y[0] + x * s.y_step, p.add ? s.residual[0] + x * s.residual_step : nullptr};
  };
  finish_16(_mm256_castsi256_si128(bytes), target(ox), s.first, s.count, p);
  if (both) finish_16(_mm256_extracti128_si256(bytes, 1), target(ox + 1), s.first, s.count, p);
}

}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_DEPTHWISE_BLOCK_AVX2_H_
