// What the NEON depthwise kernels share: a unit of 8 channels, two registers of i32 sums, and its way to y. Only for
// ARM files.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_UNIT_NEON_H_
#define EDGEKIT_KERNELS_DEPTHWISE_UNIT_NEON_H_

#include "kernels/depthwise/walk.h"
#include "kernels/requantize/requantize_neon.h"

// Static: these are compiled for NEON and for NEON with dot products, and each keeps its own.
namespace edgekit::neon {
namespace {

constexpr int kUnitChannels = 8;
using PixelSums = int32_t[kUnitChannels];

// A unit's packed weights.
struct PackedUnit {
  int32_t bias[kUnitChannels];
  float scale[kUnitChannels];
  int32_t chains;  // whether smlal may add two products in 16 bits; see depthwise_s8s8_square_8c_neon.cc
  int8_t w[];
};

[[maybe_unused]] inline size_t packed_unit_bytes(size_t weight_bytes) {
  return (sizeof(PackedUnit) + weight_bytes + 63) / 64 * 64;
}

// Bias and scale of channels [first, first + n).
[[maybe_unused]] inline void pack_columns(const DepthwiseQ8Weights& w, int32_t first, int32_t n, PackedUnit& unit) {
  for (int32_t c = 0; c < kUnitChannels; ++c) {
    unit.bias[c] = c < n ? w.bias[first + c] : 0;
    unit.scale[c] = c < n ? w.scale[first + c] : 0.0f;
  }
}

struct UnitSums {
  int32x4_t low, high;
};

[[maybe_unused]] inline __attribute__((always_inline)) UnitSums start_sums(const PackedUnit& unit) {
  return {vld1q_s32(unit.bias), vld1q_s32(unit.bias + 4)};
}
[[maybe_unused]] inline __attribute__((always_inline)) void store_sums(PixelSums& to, const UnitSums& sums) {
  vst1q_s32(to, sums.low);
  vst1q_s32(to + 4, sums.high);
}
[[maybe_unused]] inline __attribute__((always_inline)) int8x8_t load_pixel(const uint8_t* at) {
  return vld1_s8(reinterpret_cast<const int8_t*>(at));
}

// How sums become bytes.
class UnitEpilogue {
 public:
  static constexpr int kUnits = 1, kUnitChannels = neon::kUnitChannels;
  using Run = RunSums<kUnits, kUnitChannels>;

  explicit UnitEpilogue(const DepthwiseQ8Strip& s) : s_(s), p_(*s.requantize) {}

  void finish(const Run& run) const {
    // Without a residual, to write channels once more does no harm.
    const bool plain = p_.lut == nullptr && !p_.add && s_.channels >= kUnitChannels;
    for (int row = 0; row < s_.out_rows; ++row) plain ? finish_plain(run, row) : finish_any(run, row);
  }

 private:
  void finish_plain(const Run& run, int row) const {
    const PixelSums* sums = run.sums[0][row];
    const float* scale = static_cast<const PackedUnit*>(run.blocks[0].packed)->scale;
    const float32x4_t scales[2] = {vld1q_f32(scale), vld1q_f32(scale + 4)};
    const int8x16_t least = vdupq_n_s8(static_cast<int8_t>(p_.y_min)), most = vdupq_n_s8(static_cast<int8_t>(p_.y_max));
    const int16x8_t zero = vdupq_n_s16(static_cast<int16_t>(p_.y_zero));
    const int64_t y_step = s_.y_step;
    auto* y = reinterpret_cast<int8_t*>(s_.y[row] + run.ox * y_step + run.blocks[0].base);
    for (int i = 0; i < run.count; i += 2, y += 2 * y_step) {
      const int16x8_t a = vqaddq_s16(words(sums[i], scales), zero), b = vqaddq_s16(words(sums[i + 1], scales), zero);
      const int8x16_t bytes = vminq_s8(vmaxq_s8(vqmovn_high_s16(vqmovn_s16(a), b), least), most);
      vst1_s8(y, vget_low_s8(bytes));
      if (i + 1 == run.count) return;
      vst1_s8(y + y_step, vget_high_s8(bytes));
    }
  }

  // Scaled and rounded; the conversions saturate, see requantize_neon.h.
  static __attribute__((always_inline)) int16x8_t words(const PixelSums& sums, const float32x4_t (&scales)[2]) {
    const int32x4_t low = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(vld1q_s32(sums)), scales[0]));
    const int32x4_t high = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(vld1q_s32(sums + 4)), scales[1]));
    return vqmovn_high_s32(vqmovn_s32(low), high);
  }

  // With a table, a residual, or only some of the channels.
  void finish_any(const Run& run, int row) const {
    const DepthwiseQ8Block& block = run.blocks[0];
    const float* scale = static_cast<const PackedUnit*>(block.packed)->scale;
    for (int i = 0; i < run.count; ++i) {
      const PixelSums& sums = run.sums[0][row][i];
      const int64_t ox = run.ox + i;
      finish_8(requantize_8(vld1q_s32(sums), vld1q_s32(sums + 4), scale, p_), s_.y[row] + ox * s_.y_step + block.base,
               p_.add ? s_.residual[row] + ox * s_.residual_step + block.base : nullptr, block.first, block.count, p_);
    }
  }

  const DepthwiseQ8Strip& s_;
  const RequantizeQ8& p_;
};

}  // namespace
}  // namespace edgekit::neon

#endif  // EDGEKIT_KERNELS_DEPTHWISE_UNIT_NEON_H_
