// Any window on NEON, also where dot products exist: one output row of 8 channels, two pixels at a time so that a
// weight is loaded once for both. smull gives exact 16-bit products; saddw adds each into 32 bits.
#include "kernels/depthwise/unit_neon.h"

namespace edgekit::neon {
namespace {

inline void multiply_add(UnitSums& sums, int8x8_t x, int8x8_t w) {
  const int16x8_t product = vmull_s8(x, w);
  sums.low = vaddw_s16(sums.low, vget_low_s16(product));
  sums.high = vaddw_high_s16(sums.high, product);
}

// The sums of pixels ox and other.
void two_pixels(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ox, int32_t other, PixelSums* to) {
  const auto& unit = *static_cast<const PackedUnit*>(block.packed);
  UnitSums first = start_sums(unit), second = first;
  const int8_t* w = unit.w;
  for (int32_t ky = 0; ky < s.window.kernel_h; ++ky) {
    int64_t ix = s.window.first_column(ox);
    int64_t other_ix = s.window.first_column(other);
    for (int32_t kx = 0; kx < s.window.kernel_w; ++kx, w += kUnitChannels) {
      const int8x8_t weight = vld1_s8(w);
      multiply_add(first, load_pixel(s.pixel(ky, ix) + block.base), weight);
      multiply_add(second, load_pixel(s.pixel(ky, other_ix) + block.base), weight);
      ix += s.window.dilation_w;
      other_ix += s.window.dilation_w;
    }
  }
  store_sums(to[0], first);
  store_sums(to[1], second);
}

}  // namespace

void depthwise_s8s8_any_8c_neon(const DepthwiseQ8Strip& s) noexcept {
  walk_pixels<UnitEpilogue>(s, [&](const DepthwiseQ8Block& block, int32_t ox, int32_t other, PixelSums* sums) {
    two_pixels(s, block, ox, other, sums);
  });
}

void pack_depthwise_s8s8_any_8c_neon(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  auto& unit = *static_cast<PackedUnit*>(packed);
  pack_columns(w, first, n, unit);
  for (int32_t tap = 0; tap < w.kernel_h * w.kernel_w; ++tap) {
    for (int32_t c = 0; c < kUnitChannels; ++c) {
      unit.w[tap * kUnitChannels + c] = c < n ? w.w[int64_t{tap} * w.channels + first + c] : int8_t{0};
    }
  }
}

size_t packed_bytes_depthwise_s8s8_any_8c_neon(int32_t kernel_h, int32_t kernel_w) {
  return packed_unit_bytes(static_cast<size_t>(kernel_h) * static_cast<size_t>(kernel_w) * kUnitChannels);
}

}  // namespace edgekit::neon
