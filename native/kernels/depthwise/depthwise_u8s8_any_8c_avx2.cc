// Any window: one output row of 8 channels, two taps of a kernel row at a time, two pixels at a time.
#include "kernels/depthwise/unit_avx2.h"

namespace edgekit::avx2 {
namespace {

// Sums of pixels ox and other.
void two_pixels(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ox, int32_t other, PixelSums* at) {
  const auto& unit = *static_cast<const PackedUnit*>(block.packed);
  const ConvWindow& w = s.window;
  __m256i sums[2] = {start_sum(unit), start_sum(unit)};
  int64_t pair = 0;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    int64_t ix = w.first_column(ox), other_ix = w.first_column(other);
    for (int32_t kx = 0; kx < w.kernel_w; kx += 2, ix += 2 * int64_t{w.dilation_w}, other_ix += 2 * w.dilation_w) {
      const __m256i weights = pair_weights(unit, pair++);
      // An odd window's last tap pairs with the column behind it: weight 0.
      const auto taps = [&](int64_t column) {
        return pair_pixels(s.pixel(ky, column) + block.base, s.pixel(ky, column + w.dilation_w) + block.base);
      };
      multiply_add(sums[0], taps(ix), weights);
      multiply_add(sums[1], taps(other_ix), weights);
    }
  }
  for (int i = 0; i < 2; ++i) _mm256_storeu_si256(reinterpret_cast<__m256i*>(at[i]), sums[i]);
}

}  // namespace

void depthwise_u8s8_any_8c_avx2(const DepthwiseQ8Strip& s) noexcept {
  walk_pixels<UnitEpilogue>(s, [&](const DepthwiseQ8Block& block, int32_t ox, int32_t other, PixelSums* sums) {
    two_pixels(s, block, ox, other, sums);
  });
}

void pack_depthwise_u8s8_any_8c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  UnitPacker packer(w, first, n, packed);
  for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < w.kernel_w; kx += 2) {
      const int32_t tap = ky * w.kernel_w + kx;
      packer.add(tap, kx + 1 < w.kernel_w ? tap + 1 : kNoTap);
    }
  }
}

size_t packed_bytes_depthwise_u8s8_any_8c_avx2(int32_t kernel_h, int32_t kernel_w) {
  return packed_unit_bytes(static_cast<size_t>(kernel_h) * static_cast<size_t>((kernel_w + 1) / 2));
}

}  // namespace edgekit::avx2
