// Square windows of 3, 5 and 7 with dilation 1, stride 1 and 2: two output rows of 16 channels, two pixels of each a
// step, walking to the right. A 3x3 window takes three vpdpbusd for 16 channels of a pixel.
#include "kernels/depthwise/unit_avx512_vnni.h"

namespace edgekit::avx512_vnni {
namespace {

template <int kKernel, int kStride, int kOut>
using Window = QuadWindow<UnitSimd, kKernel, kStride, kOut>;

template <int kKernel, int kStride>
void walk(const DepthwiseQ8Strip& s) {
  s.out_rows == 1 ? walk_units<Window<kKernel, kStride, 1>, PackedUnit, UnitEpilogue>(s)
                  : walk_units<Window<kKernel, kStride, 2>, PackedUnit, UnitEpilogue>(s);
}

template <int kKernel, int kStride>
void pack(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) {
  auto& unit = *static_cast<PackedUnit*>(packed);
  pack_columns(w, first, n, unit);
  pack_quads<kKernel, kStride, kUnitChannels>(
      unit.w, [&](int tap, int c) { return c < n ? w.w[int64_t{tap} * w.channels + first + c] : int8_t{0}; });
}

}  // namespace

#define EK_SQUARE(name, kernel, stride)                                                            \
  void name(const DepthwiseQ8Strip& strip) noexcept { walk<kernel, stride>(strip); }               \
  void pack_##name(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept { \
    pack<kernel, stride>(w, first, n, packed);                                                     \
  }                                                                                                \
  size_t packed_bytes_##name(int32_t, int32_t) { return packed_unit_bytes(QuadShape<kernel, stride>::weights()); }
EK_SQUARE(depthwise_u8s8_3x3s1_16c_avx512_vnni, 3, 1)
EK_SQUARE(depthwise_u8s8_3x3s2_16c_avx512_vnni, 3, 2)
EK_SQUARE(depthwise_u8s8_5x5s1_16c_avx512_vnni, 5, 1)
EK_SQUARE(depthwise_u8s8_5x5s2_16c_avx512_vnni, 5, 2)
EK_SQUARE(depthwise_u8s8_7x7s1_16c_avx512_vnni, 7, 1)
#undef EK_SQUARE

}  // namespace edgekit::avx512_vnni
