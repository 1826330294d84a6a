// The reference that every other kernel equals bit for bit; any window, u8 and s8.
#include <cstring>

#include "kernels/depthwise/depthwise_q8.h"

namespace edgekit::scalar {
namespace {

constexpr int kChannels = 16;

struct Packed {
  int32_t bias[kChannels];
  float scale[kChannels];
  int8_t w[];  // NOLINT: as many taps as the kernel has, kChannels each
};

void pack(const DepthwiseQ8Weights& weights, int32_t first, int32_t n, void* out) {
  auto* packed = static_cast<Packed*>(out);
  std::memset(packed, 0, sizeof(Packed));
  std::memcpy(packed->bias, weights.bias + first, static_cast<size_t>(n) * sizeof(int32_t));
  std::memcpy(packed->scale, weights.scale + first, static_cast<size_t>(n) * sizeof(float));
  for (int32_t tap = 0; tap < weights.kernel_h * weights.kernel_w; ++tap) {
    std::memset(packed->w + tap * kChannels, 0, kChannels);
    std::memcpy(packed->w + tap * kChannels, weights.w + int64_t{tap} * weights.channels + first,
                static_cast<size_t>(n));
  }
}

size_t packed_bytes(int32_t kernel_h, int32_t kernel_w) {
  const size_t taps = static_cast<size_t>(kernel_h) * static_cast<size_t>(kernel_w);
  return (sizeof(Packed) + taps * kChannels + 63) / 64 * 64;
}

void pixel(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ox, bool is_signed) {
  const auto* packed = static_cast<const Packed*>(block.packed);
  uint32_t acc[kChannels];  // unsigned: wraps as vector instructions do
  const int last = block.first + block.count;
  for (int c = block.first; c < last; ++c) acc[c] = static_cast<uint32_t>(packed->bias[c]);
  const int8_t* w = packed->w;
  for (int32_t ky = 0; ky < s.window.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < s.window.kernel_w; ++kx, w += kChannels) {
      const uint8_t* x = s.pixel(ky, s.window.first_column(ox) + int64_t{kx} * s.window.dilation_w) + block.base;
      for (int c = block.first; c < last; ++c) acc[c] += static_cast<uint32_t>(q8_value(x[c], is_signed) * w[c]);
    }
  }
  uint8_t* y = s.y[0] + ox * s.y_step + block.base;
  for (int c = block.first; c < last; ++c) {
    const uint8_t residual = s.requantize->add ? s.residual[0][ox * s.residual_step + block.base + c] : 0;
    y[c] = requantize_q8(*s.requantize, static_cast<int32_t>(acc[c]), packed->scale[c], residual, is_signed);
  }
}

void strip_row(const DepthwiseQ8Strip& s, bool is_signed) {
  for (int32_t i = s.first_block; i < s.last_block; ++i) {
    const DepthwiseQ8Block block = s.block(i, kChannels);
    for (int32_t ox = s.first_ox; ox < s.last_ox; ++ox) pixel(s, block, ox, is_signed);
  }
}

}  // namespace

void depthwise_u8s8_any_16c_scalar(const DepthwiseQ8Strip& strip) noexcept { strip_row(strip, false); }
void depthwise_s8s8_any_16c_scalar(const DepthwiseQ8Strip& strip) noexcept { strip_row(strip, true); }

void pack_depthwise_u8s8_any_16c_scalar(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack(w, first, n, packed);
}

void pack_depthwise_s8s8_any_16c_scalar(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack(w, first, n, packed);
}

size_t packed_bytes_depthwise_u8s8_any_16c_scalar(int32_t h, int32_t w) { return packed_bytes(h, w); }
size_t packed_bytes_depthwise_s8s8_any_16c_scalar(int32_t h, int32_t w) { return packed_bytes(h, w); }

}  // namespace edgekit::scalar
