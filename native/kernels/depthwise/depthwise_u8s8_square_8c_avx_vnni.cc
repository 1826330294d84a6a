// Square windows of 3, 5 and 7 with dilation 1, stride 1 and 2, with vpdpbusd: two output rows of 8 channels, two
// pixels of each a step, walking to the right. A 3x3 window takes three vpdpbusd for 8 channels of a pixel.
#include "kernels/depthwise/quads.h"
#include "kernels/depthwise/unit_avx2.h"
#include "kernels/simd/dot_avx_vnni.h"

namespace edgekit::avx_vnni {
namespace {

using avx2::kUnitChannels;
using avx2::PackedUnit;

// Quads of four taps: see quads.h.
struct UnitSimd {
  using Taps = __m256i;
  using Sums = __m256i;
  static constexpr int kTapBytes = 32;

  static __attribute__((always_inline)) Sums start(const PackedUnit& unit) { return avx2::start_sum(unit); }

  // Both lanes hold all 8 bytes of two rows; the shuffle leaves each lane 4 channels of them.
  static __attribute__((always_inline)) Taps read(const uint8_t* r0, const uint8_t* r1, const uint8_t* r2,
                                                  const uint8_t* r3) {
    const auto pairs = [](const uint8_t* first, const uint8_t* second) {
      const __m256i order = _mm256_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                             4, 12, 5, 13, 6, 14, 7, 15, -1, -1, -1, -1, -1, -1, -1, -1);
      const __m256i a = _mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(first)));
      const __m256i b = _mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(second)));
      return _mm256_shuffle_epi8(_mm256_blend_epi32(a, b, 0xCC), order);
    };
    return _mm256_unpacklo_epi16(pairs(r0, r1), pairs(r2, r3));
  }
  static __attribute__((always_inline)) void multiply_add(Sums& sums, Taps taps, const int8_t* weights) {
    dot_add(sums, taps, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights)));
  }
  static __attribute__((always_inline)) void store(avx2::PixelSums& to, Sums sums) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums);
  }
};

template <int kKernel, int kStride>
void walk(const DepthwiseQ8Strip& s) {
  walk_quads<UnitSimd, PackedUnit, avx2::UnitEpilogue, kKernel, kStride>(s);
}

template <int kKernel, int kStride>
void pack(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) {
  auto& unit = *static_cast<PackedUnit*>(packed);
  avx2::pack_columns(w, first, n, unit);
  pack_quads<kKernel, kStride, kUnitChannels>(
      unit.w, [&](int tap, int c) { return c < n ? w.w[int64_t{tap} * w.channels + first + c] : int8_t{0}; });
}

template <int kKernel, int kStride>
size_t packed_bytes() {
  return avx2::packed_unit_bytes(QuadShape<kKernel, kStride>::weights());
}

}  // namespace

EK_SQUARE_KERNEL(depthwise_u8s8_3x3s1_8c_avx_vnni, 3, 1)
EK_SQUARE_KERNEL(depthwise_u8s8_3x3s2_8c_avx_vnni, 3, 2)
EK_SQUARE_KERNEL(depthwise_u8s8_5x5s1_8c_avx_vnni, 5, 1)
EK_SQUARE_KERNEL(depthwise_u8s8_5x5s2_8c_avx_vnni, 5, 2)
EK_SQUARE_KERNEL(depthwise_u8s8_7x7s1_8c_avx_vnni, 7, 1)

}  // namespace edgekit::avx_vnni
