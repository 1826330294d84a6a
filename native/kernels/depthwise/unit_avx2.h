// What the AVX2 and AVX-VNNI depthwise kernels share: a unit of 8 channels, one i32 sum each in a register, and its way
// to y. Only for *_avx2.cc and *_avx_vnni.cc, each with its own.
//
// With AVX2: // Two pixels' bytes of the 8 channels become (tap, tap') pairs of i16, which vpmaddwd multiplies by pairs
// of weights and adds, exactly.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX2_H_
#define EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX2_H_

#include <immintrin.h>

#include "kernels/depthwise/walk.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {
namespace {

inline constexpr int kUnitChannels = 8;

// A unit's packed weights.
struct PackedUnit {
  int32_t bias[8];
  float scale[8];
  int8_t w[];  // 32 bytes for each pair (AVX2: of i16) or quad of taps (AVX-VNNI: of s8)
};

inline size_t packed_unit_bytes(size_t vectors) { return (sizeof(PackedUnit) + vectors * 32 + 63) / 64 * 64; }

// Bias and scale of channels [first, first + n).
inline void pack_columns(const DepthwiseQ8Weights& w, int32_t first, int32_t n, PackedUnit& unit) {
  for (int32_t c = 0; c < kUnitChannels; ++c) {
    unit.bias[c] = c < n ? w.bias[first + c] : 0;
    unit.scale[c] = c < n ? w.scale[first + c] : 0.0f;
  }
}

// A tap that does not exist: weight 0.
inline constexpr int32_t kNoTap = -1;

// Writes units: bias and scale first, then one pair of weights after the other.
class UnitPacker {
 public:
  // Channels [first, first + n) of w; taps are ky * kernel_w + kx.
  UnitPacker(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed)
      : w_(w), first_(first), n_(n), next_(reinterpret_cast<int16_t*>(static_cast<PackedUnit*>(packed)->w)) {
    pack_columns(w, first, n, *static_cast<PackedUnit*>(packed));
  }
  void add(int32_t tap, int32_t other) {
    for (int32_t c = 0; c < kUnitChannels; ++c) {
      *next_++ = weight(tap, c);
      *next_++ = weight(other, c);
    }
  }

 private:
  int16_t weight(int32_t tap, int32_t c) const {
    return c < n_ && tap >= 0 ? w_.w[int64_t{tap} * w_.channels + first_ + c] : int16_t{0};
  }

  const DepthwiseQ8Weights& w_;
  int32_t first_, n_;
  int16_t* next_;
};

// (first, second) of each channel. Both lanes hold all 8 bytes of both pixels; the shuffle takes 4 channels a lane.
inline __attribute__((always_inline)) __m256i pair_pixels(const uint8_t* first, const uint8_t* second) {
  const __m256i order = _mm256_setr_epi8(0, -1, 8, -1, 1, -1, 9, -1, 2, -1, 10, -1, 3, -1, 11, -1,  //
                                         4, -1, 12, -1, 5, -1, 13, -1, 6, -1, 14, -1, 7, -1, 15, -1);
  const __m256i a = _mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(first)));
  const __m256i b = _mm256_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(second)));
  return _mm256_shuffle_epi8(_mm256_blend_epi32(a, b, 0xCC), order);
}

inline __attribute__((always_inline)) __m256i start_sum(const PackedUnit& unit) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(unit.bias));
}

inline __attribute__((always_inline)) __m256i pair_weights(const PackedUnit& unit, int64_t pair) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(unit.w) + pair);
}

inline __attribute__((always_inline)) void multiply_add(__m256i& sum, __m256i taps, __m256i weights) {
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(taps, weights));
  asm("" : "+x"(sum));  // GCC would reassociate the sums and then spill products
}

using PixelSums = int32_t[kUnitChannels];

// How sums become bytes, with its constants in registers.
class UnitEpilogue {
 public:
  static constexpr int kUnits = 2, kUnitChannels = avx2::kUnitChannels;
  using Run = RunSums<kUnits, kUnitChannels>;

  explicit UnitEpilogue(const DepthwiseQ8Strip& s)
      : s_(s),
        p_(*s.requantize),
        // Without a residual, to write channels once more does no harm.
        plain_(p_.scale_below_one && p_.lut == nullptr && !p_.add && s.channels >= kUnitChannels),
        bare_(p_.y_zero == 0 && p_.y_min == 0 && p_.y_max == 255),
        zero_(_mm256_set1_epi16(static_cast<int16_t>(p_.y_zero))),
        least_(_mm256_set1_epi8(static_cast<char>(p_.y_min))),
        most_(_mm256_set1_epi8(static_cast<char>(p_.y_max))) {}

  void finish(const Run& run) const {
    const bool together = run.units == 2 && run.blocks[1].base == run.blocks[0].base + kUnitChannels;
    for (int row = 0; row < s_.out_rows; ++row) {
      if (plain_ && together) {
        bare_ ? finish_two<true>(run, row) : finish_two<false>(run, row);
        continue;
      }
      for (int unit = 0; unit < run.units; ++unit) finish_one(run, unit, row);
    }
  }

 private:
  static __m256 scale_of(const DepthwiseQ8Block& block) {
    return _mm256_loadu_ps(static_cast<const PackedUnit*>(block.packed)->scale);
  }

  // Both units of a row: 16 bytes a pixel.
  template <bool kBare>
  __attribute__((always_inline)) void finish_two(const Run& run, int row) const {
    const PixelSums *low = run.sums[0][row], *high = run.sums[1][row];
    const __m256 scales[2] = {scale_of(run.blocks[0]), scale_of(run.blocks[1])};
    const int64_t y_step = s_.y_step;
    uint8_t* y = s_.y[row] + run.ox * y_step + run.blocks[0].base;
    for (int i = 0; i < run.count; i += 2, y += 2 * y_step) {
      const __m256i bytes = pack<true, kBare>(round<true>(low[i], scales[0]), round<true>(high[i], scales[1]),
                                              round<true>(low[i + 1], scales[0]), round<true>(high[i + 1], scales[1]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y), _mm256_castsi256_si128(bytes));
      if (i + 1 == run.count) return;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + y_step), _mm256_extracti128_si256(bytes, 1));
    }
  }

  // One unit of a row: a tail, a table, a residual, or only some of the channels.
  void finish_one(const Run& run, int unit, int row) const {
    const PixelSums* sums = run.sums[unit][row];
    const DepthwiseQ8Block& block = run.blocks[unit];
    const __m256 scale = scale_of(block);
    for (int i = 0; i < run.count; i += 4) {
      alignas(32) uint8_t pixels[4][kUnitChannels];
      const __m256i bytes = pack<false, false>(round<false>(sums[i], scale), round<false>(sums[i + 1], scale),
                                               round<false>(sums[i + 2], scale), round<false>(sums[i + 3], scale));
      _mm256_store_si256(reinterpret_cast<__m256i*>(pixels), bytes);
      for (int j = i; j < i + 4 && j < run.count; ++j) finish_pixel(pixels[j - i], block, row, run.ox + j);
    }
  }

  // Of four times eight sums, bytes in the order a, b, c, d. Saturating packs do what the clamp in float does; see
  // requantize_avx2.h. kBare: zero point and clamp need no instruction.
  template <bool kPlain, bool kBare>
  __attribute__((always_inline)) __m256i pack(__m256i a, __m256i b, __m256i c, __m256i d) const {
    __m256i first = _mm256_packs_epi32(a, b), second = _mm256_packs_epi32(c, d);
    if (!kBare) first = _mm256_adds_epi16(first, zero_);
    if (!kBare) second = _mm256_adds_epi16(second, zero_);
    __m256i bytes = _mm256_packus_epi16(first, second);
    if (!kBare) bytes = _mm256_min_epu8(_mm256_max_epu8(bytes, least_), most_);
    if (!kPlain && p_.lut != nullptr) bytes = look_up(bytes, p_.lut_steps);
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }

  template <bool kPlain>
  __attribute__((always_inline)) __m256i round(const PixelSums& sums, __m256 scale) const {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
    if (!kPlain) return round_scaled(v, scale, p_);
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(v), scale));
  }

  // Adds the residual, if any, and stores the bytes [first, first + count) of the block.
  void finish_pixel(const uint8_t (&pixel)[kUnitChannels], const DepthwiseQ8Block& block, int row, int32_t ox) const {
    uint8_t* y = s_.y[row] + ox * s_.y_step + block.base;
    __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixel));
    if (plain_) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(y), bytes);
      return;
    }
    if (p_.add) {
      const uint8_t* residual = s_.residual[row] + ox * s_.residual_step + block.base;
      bytes = add_16(bytes, load_part(residual, block.first, block.count), p_.residual);
    }
    store_part(bytes, y, block.first, block.count);
  }

  const DepthwiseQ8Strip& s_;
  const RequantizeQ8& p_;
  const bool plain_, bare_;
  const __m256i zero_, least_, most_;
};

}  // namespace
}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX2_H_
