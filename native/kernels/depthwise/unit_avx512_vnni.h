// What the AVX-512 depthwise kernels share: a unit of 16 channels, one i32 sum each in a register, and its way to y.
// Only for *_avx512_vnni.cc.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX512_VNNI_H_
#define EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX512_VNNI_H_

#include "kernels/depthwise/quads.h"
#include "kernels/requantize/requantize_avx512_vnni.h"

namespace edgekit::avx512_vnni {

inline constexpr int kUnitChannels = 16;
using PixelSums = int32_t[kUnitChannels];

// A unit's packed weights.
struct PackedUnit {
  int32_t bias[kUnitChannels];
  float scale[kUnitChannels];
  int8_t w[];  // 64 for each quad of taps
};

inline size_t packed_unit_bytes(size_t quads) { return sizeof(PackedUnit) + quads * 64; }

// Bias and scale of channels [first, first + n).
inline void pack_columns(const DepthwiseQ8Weights& w, int32_t first, int32_t n, PackedUnit& unit) {
  for (int32_t c = 0; c < kUnitChannels; ++c) {
    unit.bias[c] = c < n ? w.bias[first + c] : 0;
    unit.scale[c] = c < n ? w.scale[first + c] : 0.0f;
  }
}

// Quads of four taps: see quads.h.
struct UnitSimd {
  using Taps = __m512i;
  using Sums = __m512i;
  static constexpr int kTapBytes = 64;

  static __attribute__((always_inline)) Sums start(const PackedUnit& unit) { return _mm512_loadu_si512(unit.bias); }

  // The 16 bytes of each pixel fill a lane; then lane i gets channels 4i to 4i + 3 of all, then their order.
  static __attribute__((always_inline)) Taps read(const uint8_t* r0, const uint8_t* r1, const uint8_t* r2,
                                                  const uint8_t* r3) {
    const __m512i lanes = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const auto row = [](const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
    __m512i rows = _mm512_broadcast_i32x4(row(r0));
    rows = _mm512_mask_broadcast_i32x4(rows, 0x00f0, row(r1));
    rows = _mm512_mask_broadcast_i32x4(rows, 0x0f00, row(r2));
    rows = _mm512_mask_broadcast_i32x4(rows, 0xf000, row(r3));
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, rows), order);
  }

  static __attribute__((always_inline)) void multiply_add(Sums& sums, Taps taps, const int8_t* weights) {
    dot_add(sums, taps, _mm512_loadu_si512(weights));
  }
  static __attribute__((always_inline)) void store(PixelSums& to, Sums sums) { _mm512_storeu_si512(to, sums); }
};

// How sums become bytes.
class UnitEpilogue {
 public:
  static constexpr int kUnits = 1, kUnitChannels = avx512_vnni::kUnitChannels;

  explicit UnitEpilogue(const DepthwiseQ8Strip& s) : s_(s), p_(*s.requantize) {}

  void finish(const RunSums<kUnits, kUnitChannels>& run) const {
    for (int row = 0; row < s_.out_rows; ++row) {
      finish_row(run.sums[0][row], run.count, run.blocks[0], row, run.ox);
    }
  }

 private:
  // Pixels [ox, ox + count) of an output row.
  void finish_row(const PixelSums* sums, int count, const DepthwiseQ8Block& block, int row, int32_t ox) const {
    const float* scale = static_cast<const PackedUnit*>(block.packed)->scale;
    const __mmask64 part = part_of_64(block.first, block.count);
    for (int i = 0; i < count; i += 4) {
      __m512i v[4];
      for (int j = 0; j < 4; ++j) v[j] = round_scaled(_mm512_loadu_si512(sums[i + j]), scale, p_);
      __m512i bytes = order_lanes(pack_lanes(v, p_));
      if (p_.lut != nullptr) bytes = look_up(bytes, p_.lut_steps);
      store(bytes, count - i < 4 ? count - i : 4, part, block, row, ox + i);
    }
  }

  // The residual, if any, and the stores of up to four pixels; only the bytes of `part` exist in memory.
  __attribute__((always_inline)) void store(__m512i bytes, int count, __mmask64 part, const DepthwiseQ8Block& block,
                                            int row, int32_t ox) const {
    if (p_.add) {
      const uint8_t* at = s_.residual[row] + ox * s_.residual_step + block.base;
      const auto residual = [&](int j) {
        const __mmask64 exists = j < count ? part : 0;
        return _mm512_castsi512_si128(_mm512_maskz_loadu_epi8(exists, at + j * s_.residual_step));
      };
      const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(residual(0)), residual(1), 1);
      const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(residual(2)), residual(3), 1);
      bytes = add_64(bytes, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), p_.residual);
    }
    uint8_t* y = s_.y[row] + ox * s_.y_step + block.base;
    const auto put = [&](int j, __m128i pixel) {
      uint8_t* at = y + j * s_.y_step;
      if (j >= count) return;
      if (part == 0xffff) return _mm_storeu_si128(reinterpret_cast<__m128i*>(at), pixel);
      _mm512_mask_storeu_epi8(at, part, _mm512_castsi128_si512(pixel));
    };
    put(0, _mm512_castsi512_si128(bytes));
    put(1, _mm512_extracti32x4_epi32(bytes, 1));
    put(2, _mm512_extracti32x4_epi32(bytes, 2));
    put(3, _mm512_extracti32x4_epi32(bytes, 3));
  }

  const DepthwiseQ8Strip& s_;
  const RequantizeQ8& p_;
};

}  // namespace edgekit::avx512_vnni

#endif  // EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX512_VNNI_H_
