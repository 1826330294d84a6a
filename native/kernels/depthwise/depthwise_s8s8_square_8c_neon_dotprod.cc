// Square windows of 3, 5 and 7 with dilation 1, stride 1 and 2, on NEON with dot products: two output rows of 8
// channels, two pixels of each a step, walking to the right. A 3x3 window takes six sdot for 8 channels of a pixel.
#include "kernels/depthwise/quads.h"
#include "kernels/depthwise/unit_neon.h"

namespace edgekit::neon_dotprod {
namespace {

using neon::kUnitChannels;
using neon::PackedUnit;

// Quads of four taps, of channels 0 to 3 and 4 to 7: see quads.h.
struct UnitSimd {
  struct Taps {
    int8x16_t low, high;
  };
  using Sums = neon::UnitSums;
  static constexpr int kTapBytes = 32;

  static __attribute__((always_inline)) Sums start(const PackedUnit& unit) { return neon::start_sums(unit); }
  static __attribute__((always_inline)) Taps read(const uint8_t* r0, const uint8_t* r1, const uint8_t* r2,
                                                  const uint8_t* r3) {
    const auto zip = [](const uint8_t* a, const uint8_t* b) {
      const auto wide = [](int8x8_t v) { return vcombine_s8(v, vdup_n_s8(0)); };
      return vreinterpretq_s16_s8(vzip1q_s8(wide(neon::load_pixel(a)), wide(neon::load_pixel(b))));
    };
    const int16x8_t upper = zip(r0, r1), lower = zip(r2, r3);
    return {vreinterpretq_s8_s16(vzip1q_s16(upper, lower)), vreinterpretq_s8_s16(vzip2q_s16(upper, lower))};
  }
  static __attribute__((always_inline)) void multiply_add(Sums& sums, const Taps& taps, const int8_t* weights) {
    sums.low = vdotq_s32(sums.low, taps.low, vld1q_s8(weights));
    sums.high = vdotq_s32(sums.high, taps.high, vld1q_s8(weights + 16));
  }
  static __attribute__((always_inline)) void store(neon::PixelSums& to, const Sums& sums) {
    neon::store_sums(to, sums);
  }
};

template <int kKernel, int kStride>
void walk(const DepthwiseQ8Strip& s) {
  walk_quads<UnitSimd, PackedUnit, neon::UnitEpilogue, kKernel, kStride>(s);
}

template <int kKernel, int kStride>
void pack(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) {
  auto& unit = *static_cast<PackedUnit*>(packed);
  neon::pack_columns(w, first, n, unit);
  pack_quads<kKernel, kStride, kUnitChannels>(
      unit.w, [&](int tap, int c) { return c < n ? w.w[int64_t{tap} * w.channels + first + c] : int8_t{0}; });
}

template <int kKernel, int kStride>
size_t packed_bytes() {
  return neon::packed_unit_bytes(QuadShape<kKernel, kStride>::weights() * UnitSimd::kTapBytes);
}

}  // namespace

EK_SQUARE_KERNEL(depthwise_s8s8_3x3s1_8c_neon_dotprod, 3, 1)
EK_SQUARE_KERNEL(depthwise_s8s8_3x3s2_8c_neon_dotprod, 3, 2)
EK_SQUARE_KERNEL(depthwise_s8s8_5x5s1_8c_neon_dotprod, 5, 1)
EK_SQUARE_KERNEL(depthwise_s8s8_5x5s2_8c_neon_dotprod, 5, 2)
EK_SQUARE_KERNEL(depthwise_s8s8_7x7s1_8c_neon_dotprod, 7, 1)

}  // namespace edgekit::neon_dotprod
