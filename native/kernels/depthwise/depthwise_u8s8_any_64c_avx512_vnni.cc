// Any window: one output row of 64 channels. Bytes of four taps are interleaved, so that each 32-bit lane holds four
// taps of one channel, and one vpdpbusd multiplies and adds them all. For windows of three rows the fourth tap is no
// tap at all (weight 0); a column's interleaved taps serve all the pixels it takes part in.
#include "kernels/depthwise/depthwise_q8.h"
#include "kernels/requantize/requantize_avx512_vnni.h"

namespace edgekit::avx512_vnni {
namespace {

constexpr int kChannels = 64;

// Vector q of a group of taps holds, in lane i, channels 16 * i + 4 * q to + 3: what unpacking in lanes gives. The
// packs of the epilogue put them back in order.
struct PackedBlock {
  int32_t bias[kChannels];
  float scale[kChannels];
  int8_t w[];  // for each group of four taps, 4 vectors of 64
};

inline int slot_of(int channel) { return channel % 16 / 4 * 16 + channel / 16 * 4 + channel % 4; }

struct Interleaved {
  __m512i v[4];
};

inline __m512i load_64(const uint8_t* at) { return _mm512_loadu_si512(at); }

inline Interleaved interleave(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b);
  const __m512i ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d);
  const __m512i cd_high = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(ab_low, cd_low), _mm512_unpackhi_epi16(ab_low, cd_low),
           _mm512_unpacklo_epi16(ab_high, cd_high), _mm512_unpackhi_epi16(ab_high, cd_high)}};
}

inline void multiply_add(__m512i (&sums)[4], const Interleaved& taps, const int8_t* weights) {
  for (int q = 0; q < 4; ++q) dot_add(sums[q], taps.v[q], _mm512_loadu_si512(weights + 64 * q));
}

// Rows [ky, ky + 4) of one column; rows behind the window repeat its last one, with weight 0.
inline Interleaved column_taps(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ky, int64_t ix) {
  const int32_t last = s.window.kernel_h - 1;
  const auto row = [&](int32_t i) { return load_64(s.pixel(ky + i < last ? ky + i : last, ix) + block.base); };
  return interleave(row(0), row(1), row(2), row(3));
}

void start_sums(const DepthwiseQ8Block& block, __m512i (&sums)[4]) {
  for (int q = 0; q < 4; ++q)
    sums[q] = _mm512_loadu_si512(static_cast<const PackedBlock*>(block.packed)->bias + 16 * q);
}

void finish_pixel(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, const __m512i (&sums)[4], int32_t ox) {
  const auto& weights = *static_cast<const PackedBlock*>(block.packed);
  const RequantizeQ8& p = *s.requantize;
  __m512i v[4];
  for (int q = 0; q < 4; ++q) v[q] = round_scaled(sums[q], weights.scale + 16 * q, p);
  finish_64(pack_lanes(v, p), s.y[0] + ox * s.y_step + block.base,
            p.add ? s.residual[0] + ox * s.residual_step + block.base : nullptr, part_of_64(block.first, block.count),
            p);
}

void any_pixel(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ox) {
  __m512i sums[4];
  start_sums(block, sums);
  const int8_t* weights = static_cast<const PackedBlock*>(block.packed)->w;
  for (int32_t ky = 0; ky < s.window.kernel_h; ky += 4) {
    int64_t ix = s.window.first_column(ox);
    for (int32_t kx = 0; kx < s.window.kernel_w; ++kx, ix += s.window.dilation_w, weights += 256) {
      multiply_add(sums, column_taps(s, block, ky, ix), weights);
    }
  }
  finish_pixel(s, block, sums, ox);
}

}  // namespace

void depthwise_u8s8_any_64c_avx512_vnni(const DepthwiseQ8Strip& s) noexcept {
  for (int32_t i = s.first_block; i < s.last_block; ++i) {
    for (int32_t ox = s.first_ox; ox < s.last_ox; ++ox) any_pixel(s, s.block(i, kChannels), ox);
  }
}

void pack_depthwise_u8s8_any_64c_avx512_vnni(const DepthwiseQ8Weights& w, int32_t first, int32_t n,
                                             void* packed) noexcept {
  auto& block = *static_cast<PackedBlock*>(packed);
  for (int32_t c = 0; c < kChannels; ++c) {
    const int slot = slot_of(c);
    block.bias[slot] = c < n ? w.bias[first + c] : 0;
    block.scale[slot] = c < n ? w.scale[first + c] : 0.0f;
    int8_t* weights = block.w + slot * 4;
    for (int32_t ky = 0; ky < w.kernel_h; ky += 4) {
      for (int32_t kx = 0; kx < w.kernel_w; ++kx, weights += 256) {
        for (int32_t i = 0; i < 4; ++i) {
          const bool real = c < n && ky + i < w.kernel_h;
          const int64_t tap = int64_t{ky + i} * w.kernel_w + kx;
          weights[i] = real ? w.w[tap * w.channels + first + c] : int8_t{0};
        }
      }
    }
  }
}

size_t packed_bytes_depthwise_u8s8_any_64c_avx512_vnni(int32_t kernel_h, int32_t kernel_w) {
  const size_t groups = static_cast<size_t>((kernel_h + 3) / 4) * static_cast<size_t>(kernel_w);
  return sizeof(PackedBlock) + groups * 256;
}

}  // namespace edgekit::avx512_vnni
