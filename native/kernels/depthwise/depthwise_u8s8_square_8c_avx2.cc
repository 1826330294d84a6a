// Square windows of 3, 5 and 7 with dilation 1, stride 1 and 2: two output rows of 8 channels, two pixels of each a
// step, walking to the right.
//
// Input rows that both output rows read are joined vertically: a pair of rows serves each output pixel it takes part
// in, with the weights of its place in that pixel's window. A row that is left over in some window is joined
// horizontally, columns 2j and 2j + 1. What the next step needs again stays in registers or in level 1. Nine taps of
// four pixels so take 20 vpmaddwd and 8 shuffles.
#include "kernels/depthwise/unit_avx2.h"

namespace edgekit::avx2 {
namespace {

// Which rows are joined how. A pair or row serves an output row if all of it is inside that row's window.
template <int kKernel, int kStride>
struct Shape {
  static constexpr int kVerticals = (kKernel - 1) / 2 + kStride - 1;
  static constexpr int kHorizontals = 3 - kStride;
  static constexpr int kGroups = kVerticals + kHorizontals;
  static constexpr int kColumns = kKernel + kStride;          // that one step reads
  static constexpr int kOldColumns = kKernel - kStride;       // of them, those that the step before has read
  static constexpr int kPairs = (kKernel - 1) / 2 + kStride;  // the same of horizontal pairs
  static constexpr int kOldPairs = (kKernel - 1) / 2;
  static constexpr int kWindowPairs = (kKernel + 1) / 2;         // horizontal pairs that a window touches
  static constexpr int kLastColumn = kKernel + 2 * kStride - 2;  // the last that one step reads, from its first
  static constexpr int kShifts = kStride == 1 ? 2 : 1;           // ways in which a window lies on horizontal pairs

  // Upper row of vertical pair i: with stride 2 the pairs stand on both sides of the row that both windows share.
  static constexpr int vertical(int i) { return kStride == 1 ? 2 * i + 1 : 2 * i + (2 * i >= kKernel - 1 ? 1 : 0); }
  static constexpr int horizontal(int i) { return kStride == 1 ? i * kKernel : kKernel - 1; }
  // Whether `rows` rows from `row` on are in the window of an output row.
  static constexpr bool serves(int row, int rows, int out) {
    return row >= out * kStride && row + rows <= out * kStride + kKernel;
  }
};

template <int kKernelSize, int kStrideSize, int kOutRows>
class Window {
 public:
  static constexpr int kKernel = kKernelSize, kStride = kStrideSize, kOut = kOutRows;
  using S = Shape<kKernel, kStride>;
  static constexpr int kOldColumns = S::kOldColumns, kLastColumn = S::kLastColumn;

  template <typename Pixels>
  __attribute__((always_inline)) void read_old(const Pixels& pixels) {
#pragma GCC unroll 8
    for (int i = 0; i < S::kGroups; ++i) read<true>(pixels, i);
  }

  // Two pixels of each output row. A group's taps are read while the group before is multiplied.
  template <typename Pixels>
  __attribute__((always_inline)) void step(const Pixels& pixels, const PackedUnit& unit, PixelSums* first,
                                           PixelSums* second) {
    __m256i sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kOut; ++i) sums[i] = start_sum(unit);
    int64_t weight = 0;
    read<false>(pixels, 0);
#pragma GCC unroll 8
    for (int i = 0; i < S::kGroups; ++i) {
      read<false>(pixels, i + 1);
      if (i < S::kVerticals) {
        add_vertical(unit, i, weight, sums);
      } else {
        add_horizontal(unit, i - S::kVerticals, weight, sums);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kOut; ++i) {
      PixelSums* row = i < 2 ? first : second;  // named: GCC 12's UBSan mistakes the element of (a ? b : c)[i]
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(row[i % 2]), sums[i]);
    }
  }

 private:
  static constexpr bool used(int row, int rows) {
    return S::serves(row, rows, 0) || (kOut == 2 && S::serves(row, rows, 1));
  }

  // The new taps of group i, or the old ones; vertical groups come first.
  template <bool kOld, typename Pixels>
  __attribute__((always_inline)) void read(const Pixels& pixels, int i) {
    if (i < S::kVerticals) {
      const int row = S::vertical(i);
      if (!used(row, 2)) return;
#pragma GCC unroll 8
      for (int j = kOld ? 0 : S::kOldColumns; j < (kOld ? S::kOldColumns : S::kColumns); ++j) {
        verticals_[i][j] = pair_pixels(pixels.pixel(row, j), pixels.pixel(row + 1, j));
      }
    } else if (i < S::kGroups) {
      const int row = S::horizontal(i - S::kVerticals);
      if (!used(row, 1)) return;
#pragma GCC unroll 8
      for (int j = kOld ? 0 : S::kOldPairs; j < (kOld ? S::kOldPairs : S::kPairs); ++j) {
        horizontals_[i - S::kVerticals][j] = pair_pixels(pixels.pixel(row, 2 * j), pixels.pixel(row, 2 * j + 1));
      }
    }
  }

  __attribute__((always_inline)) void add_vertical(const PackedUnit& unit, int i, int64_t& weight, __m256i (&sums)[4]) {
    const int row = S::vertical(i);
    auto& taps = verticals_[i];
#pragma GCC unroll 8
    for (int k = 0; k < kKernel; ++k) {
#pragma GCC unroll 2
      for (int out = 0; out < 2; ++out) {
        if (!S::serves(row, 2, out)) continue;
        if (out < kOut) {
          const __m256i weights = pair_weights(unit, weight);
          multiply_add(sums[2 * out], taps[k], weights);
          multiply_add(sums[2 * out + 1], taps[k + kStride], weights);
        }
        ++weight;
      }
    }
    if (!used(row, 2)) return;
#pragma GCC unroll 8
    for (int j = 0; j < S::kOldColumns; ++j) taps[j] = taps[j + 2 * kStride];
  }

  __attribute__((always_inline)) void add_horizontal(const PackedUnit& unit, int i, int64_t& weight,
                                                     __m256i (&sums)[4]) {
    const int row = S::horizontal(i);
    auto& taps = horizontals_[i];
#pragma GCC unroll 2
    for (int out = 0; out < 2; ++out) {
      if (!S::serves(row, 1, out)) continue;
#pragma GCC unroll 8
      for (int j = 0; j < S::kWindowPairs; ++j) {
        if (out < kOut) {
          const __m256i weights = pair_weights(unit, weight);
          multiply_add(sums[2 * out], taps[j], weights);
          if (kStride == 1) {
            multiply_add(sums[2 * out + 1], taps[j], pair_weights(unit, weight + S::kWindowPairs));
          } else {
            multiply_add(sums[2 * out + 1], taps[j + 1], weights);
          }
        }
        ++weight;
      }
      if (kStride == 1) weight += S::kWindowPairs;
    }
    if (!used(row, 1)) return;
#pragma GCC unroll 8
    for (int j = 0; j < S::kOldPairs; ++j) taps[j] = taps[j + kStride];
  }

  __m256i verticals_[S::kVerticals][S::kColumns];
  __m256i horizontals_[S::kHorizontals][S::kPairs];
};

template <int kKernel, int kStride>
void walk(const DepthwiseQ8Strip& s) {
  s.out_rows == 1 ? walk_units<Window<kKernel, kStride, 1>, PackedUnit, UnitEpilogue>(s)
                  : walk_units<Window<kKernel, kStride, 2>, PackedUnit, UnitEpilogue>(s);
}

// In the order in which a step reads them.
template <int kKernel, int kStride>
void pack(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) {
  using S = Shape<kKernel, kStride>;
  UnitPacker packer(w, first, n, packed);
  const auto tap = [](int ky, int kx) { return kx >= 0 && kx < kKernel ? ky * kKernel + kx : kNoTap; };
  for (int i = 0; i < S::kVerticals; ++i) {
    for (int k = 0; k < kKernel; ++k) {
      for (int out = 0; out < 2; ++out) {
        const int ky = S::vertical(i) - out * kStride;
        if (S::serves(S::vertical(i), 2, out)) packer.add(tap(ky, k), tap(ky + 1, k));
      }
    }
  }
  for (int i = 0; i < S::kHorizontals; ++i) {
    for (int out = 0; out < 2; ++out) {
      const int ky = S::horizontal(i) - out * kStride;
      if (!S::serves(S::horizontal(i), 1, out)) continue;
      for (int shift = 0; shift < S::kShifts; ++shift) {
        for (int j = 0; j < S::kWindowPairs; ++j) packer.add(tap(ky, 2 * j - shift), tap(ky, 2 * j + 1 - shift));
      }
    }
  }
}

template <int kKernel, int kStride>
size_t packed_bytes() {
  using S = Shape<kKernel, kStride>;
  size_t pairs = 0;
  for (int out = 0; out < 2; ++out) {
    for (int i = 0; i < S::kVerticals; ++i) pairs += S::serves(S::vertical(i), 2, out) ? kKernel : 0;
    for (int i = 0; i < S::kHorizontals; ++i) {
      pairs += S::serves(S::horizontal(i), 1, out) ? S::kWindowPairs * S::kShifts : 0;
    }
  }
  return packed_unit_bytes(pairs);
}

}  // namespace

EK_SQUARE_KERNEL(depthwise_u8s8_3x3s1_8c_avx2, 3, 1)
EK_SQUARE_KERNEL(depthwise_u8s8_3x3s2_8c_avx2, 3, 2)
EK_SQUARE_KERNEL(depthwise_u8s8_5x5s1_8c_avx2, 5, 1)
EK_SQUARE_KERNEL(depthwise_u8s8_5x5s2_8c_avx2, 5, 2)
EK_SQUARE_KERNEL(depthwise_u8s8_7x7s1_8c_avx2, 7, 1)

}  // namespace edgekit::avx2
