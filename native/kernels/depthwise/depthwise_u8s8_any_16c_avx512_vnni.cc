// Any window: one output row of 16 channels, four rows of a column of the window at a time.
#include "kernels/depthwise/unit_avx512_vnni.h"

namespace edgekit::avx512_vnni {
namespace {

using Unit = PackedUnit<1>;
constexpr int32_t kUnitChannels = 16;

// How sums become bytes.
class UnitEpilogue {
 public:
  static constexpr int kUnits = 1, kUnitChannels = 16;

  explicit UnitEpilogue(const DepthwiseQ8Strip& s) : s_(s) {}

  void finish(const RunSums<kUnits, kUnitChannels>& run) const {
    const float* scale = static_cast<const Unit*>(run.blocks[0].packed)->scale;
    const RequantizeQ8& p = *s_.requantize;
    alignas(64) uint8_t bytes[kRunPixels * kUnitChannels];
    for (int i = 0; i < run.count; i += 4) {
      __m512i v[4];
      for (int j = 0; j < 4; ++j) v[j] = round_scaled(_mm512_loadu_si512(run.sums[0][0][i + j]), scale, p);
      _mm512_store_si512(bytes + i * kUnitChannels, order_lanes(pack_lanes(v, p)));
    }
    finish_pixels<1>(s_, run.blocks[0], 0, run.ox, run.count, bytes);
  }

 private:
  const DepthwiseQ8Strip& s_;
};

void sum_pixel(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ox, int32_t (&to)[kUnitChannels]) {
  const auto& unit = *static_cast<const Unit*>(block.packed);
  __m512i sums = _mm512_loadu_si512(unit.bias);
  const int8_t* weights = unit.w;
  const int32_t last = s.window.kernel_h - 1;
  for (int32_t ky = 0; ky < s.window.kernel_h; ky += 4) {
    int64_t ix = s.window.first_column(ox);
    for (int32_t kx = 0; kx < s.window.kernel_w; ++kx, ix += s.window.dilation_w, weights += 64) {
      // Rows behind the window repeat its last one, with weight 0.
      const auto at = [&](int32_t i) { return s.pixel(ky + i < last ? ky + i : last, ix) + block.base; };
      __m512i taps[1];
      Lanes<1>::interleave({at(0), at(1), at(2), at(3)}, taps);
      dot_add(sums, taps[0], _mm512_loadu_si512(weights));
    }
  }
  _mm512_storeu_si512(to, sums);
}

}  // namespace

void depthwise_u8s8_any_16c_avx512_vnni(const DepthwiseQ8Strip& s) noexcept {
  walk_pixels<UnitEpilogue>(s, [&](const DepthwiseQ8Block& block, int32_t ox, int32_t other, auto* sums) {
    sum_pixel(s, block, ox, sums[0]);
    sum_pixel(s, block, other, sums[1]);
  });
}

void pack_depthwise_u8s8_any_16c_avx512_vnni(const DepthwiseQ8Weights& w, int32_t first, int32_t n,
                                             void* packed) noexcept {
  auto& unit = *static_cast<Unit*>(packed);
  pack_columns(w, first, n, unit);
  int8_t* to = unit.w;
  for (int32_t ky = 0; ky < w.kernel_h; ky += 4) {
    for (int32_t kx = 0; kx < w.kernel_w; ++kx) {
      for (int32_t c = 0; c < kUnitChannels; ++c) {
        for (int32_t i = 0; i < 4; ++i) {
          const int64_t tap = int64_t{ky + i} * w.kernel_w + kx;
          *to++ = c < n && ky + i < w.kernel_h ? w.w[tap * w.channels + first + c] : int8_t{0};
        }
      }
    }
  }
}

size_t packed_bytes_depthwise_u8s8_any_16c_avx512_vnni(int32_t kernel_h, int32_t kernel_w) {
  return packed_unit_bytes<1>(static_cast<size_t>((kernel_h + 3) / 4) * static_cast<size_t>(kernel_w));
}

}  // namespace edgekit::avx512_vnni
