// Any window: one output row of 16 channels, two taps of a kernel row at a time.
#include "kernels/depthwise/block_avx2.h"

namespace edgekit::avx2 {
namespace {

struct TapReader {
  const DepthwiseQ8Strip& s;

  __m256i tap(int32_t ky, int64_t ix) const {
    const bool inside = static_cast<uint64_t>(ix) < static_cast<uint64_t>(s.w);
    return widen_16(inside ? s.rows[ky] + ix * s.steps[ky] : s.zero);
  }
};

void pixel(const DepthwiseQ8Strip& s, int32_t ox, __m256i& low, __m256i& high) {
  const auto& block = *static_cast<const PackedBlock*>(s.packed);
  const TapReader reader{s};
  const ConvWindow& w = s.window;
  start_sums(block, low, high);
  int pair = 0;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    int64_t ix = w.first_column(ox);
    int32_t kx = 0;
    for (; kx + 2 <= w.kernel_w; kx += 2, ix += 2 * int64_t{w.dilation_w}) {
      multiply_add(low, high, interleave(reader.tap(ky, ix), reader.tap(ky, ix + w.dilation_w)), block, pair++);
    }
    if (kx == w.kernel_w) continue;
    multiply_add(low, high, interleave(reader.tap(ky, ix), _mm256_setzero_si256()), block, pair++);
  }
}

}  // namespace

void depthwise_u8s8_any_16c_avx2(const DepthwiseQ8Strip& s) noexcept {
  for (int32_t ox = 0; ox < s.out_w; ox += 2) {
    __m256i sums[4];
    const bool both = ox + 1 < s.out_w;
    pixel(s, ox, sums[0], sums[1]);
    pixel(s, both ? ox + 1 : ox, sums[2], sums[3]);
    finish_pixels(s, sums, ox, both);
  }
}

void pack_depthwise_u8s8_any_16c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  auto& block = *static_cast<PackedBlock*>(packed);
  pack_block(w, first, n, nullptr, 0, block);
  const int32_t pairs_a_row = (w.kernel_w + 1) / 2;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < pairs_a_row * 2; ++kx) {
      const int64_t pair = int64_t{ky} * pairs_a_row + kx / 2;
      for (int c = 0; c < kBlockChannels; ++c) {
        const bool real = c < n && kx < w.kernel_w;
        const int64_t tap = int64_t{ky} * w.kernel_w + kx;
        block.pairs[pair * 32 + slot_of(c) * 2 + kx % 2] = real ? w.w[tap * w.channels + first + c] : int16_t{0};
      }
    }
  }
}

size_t packed_bytes_depthwise_u8s8_any_16c_avx2(int32_t kernel_h, int32_t kernel_w) {
  const size_t pairs = static_cast<size_t>(kernel_h) * static_cast<size_t>((kernel_w + 1) / 2);
  return packed_block_bytes(pairs);
}

}  // namespace edgekit::avx2
