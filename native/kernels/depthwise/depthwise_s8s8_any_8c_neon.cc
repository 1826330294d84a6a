// Any window on NEON, also where dot products exist: one output row of 8 channels, two pixels at a time so that a
// weight is loaded once for both. smull gives exact 16-bit products; saddw adds each into 32 bits.
#include <arm_neon.h>

#include "kernels/depthwise/depthwise_q8.h"
#include "kernels/requantize/requantize_neon.h"

namespace edgekit::neon {
namespace {

constexpr int kChannels = 8;

struct PackedBlock {
  int32_t bias[kChannels];
  float scale[kChannels];
  int8_t w[];  // kChannels for each tap
};

struct Sums {
  int32x4_t low, high;
};

inline void multiply_add(Sums& sums, int8x8_t x, int8x8_t w) {
  const int16x8_t product = vmull_s8(x, w);
  sums.low = vaddw_s16(sums.low, vget_low_s16(product));
  sums.high = vaddw_high_s16(sums.high, product);
}

inline int8x8_t tap(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ky, int64_t ix) {
  return vld1_s8(reinterpret_cast<const int8_t*>(s.pixel(ky, ix) + block.base));
}

// The sums of pixels ox and other.
void two_pixels(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& at, int32_t ox, int32_t other, Sums& first,
                Sums& second) {
  const auto& block = *static_cast<const PackedBlock*>(at.packed);
  first = second = {vld1q_s32(block.bias), vld1q_s32(block.bias + 4)};
  const int8_t* w = block.w;
  for (int32_t ky = 0; ky < s.window.kernel_h; ++ky) {
    int64_t ix = s.window.first_column(ox);
    int64_t other_ix = s.window.first_column(other);
    for (int32_t kx = 0; kx < s.window.kernel_w; ++kx, w += kChannels) {
      const int8x8_t weight = vld1_s8(w);
      multiply_add(first, tap(s, at, ky, ix), weight);
      multiply_add(second, tap(s, at, ky, other_ix), weight);
      ix += s.window.dilation_w;
      other_ix += s.window.dilation_w;
    }
  }
}

void finish(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& at, int32_t ox, const Sums& sums) {
  const auto& block = *static_cast<const PackedBlock*>(at.packed);
  const RequantizeQ8& p = *s.requantize;
  finish_8(requantize_8(sums.low, sums.high, block.scale, p), s.y[0] + ox * s.y_step + at.base,
           p.add ? s.residual[0] + ox * s.residual_step + at.base : nullptr, at.first, at.count, p);
}

}  // namespace

void depthwise_s8s8_any_8c_neon(const DepthwiseQ8Strip& s) noexcept {
  for (int32_t i = s.first_block; i < s.last_block; ++i) {
    const DepthwiseQ8Block block = s.block(i, kChannels);
    for (int32_t ox = s.first_ox; ox < s.last_ox; ox += 2) {
      const bool both = ox + 1 < s.last_ox;
      Sums first, second;
      two_pixels(s, block, ox, both ? ox + 1 : ox, first, second);
      finish(s, block, ox, first);
      if (both) finish(s, block, ox + 1, second);
    }
  }
}

void pack_depthwise_s8s8_any_8c_neon(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  auto& block = *static_cast<PackedBlock*>(packed);
  for (int32_t c = 0; c < kChannels; ++c) {
    block.bias[c] = c < n ? w.bias[first + c] : 0;
    block.scale[c] = c < n ? w.scale[first + c] : 0.0f;
    for (int32_t tap = 0; tap < w.kernel_h * w.kernel_w; ++tap) {
      block.w[tap * kChannels + c] = c < n ? w.w[int64_t{tap} * w.channels + first + c] : int8_t{0};
    }
  }
}

size_t packed_bytes_depthwise_s8s8_any_8c_neon(int32_t kernel_h, int32_t kernel_w) {
  const size_t taps = static_cast<size_t>(kernel_h) * static_cast<size_t>(kernel_w);
  return (sizeof(PackedBlock) + taps * kChannels + 63) / 64 * 64;
}

}  // namespace edgekit::neon
