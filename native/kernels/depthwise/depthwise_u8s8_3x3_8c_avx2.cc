// 3x3, dilation 1, stride 1 and 2: one output row of 8 channels, walking to the right. Rows 0 and 1 of a column make a
// pair, row 2 pairs with the next column: five vpmaddwd for nine taps. What the next pixel needs stays in registers.
#include "kernels/depthwise/pixels_avx2.h"

namespace edgekit::avx2 {
namespace {

// Taps are ky * 3 + kx.
constexpr int kPairs = 5;
constexpr int kPairTaps1[kPairs][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}, {-1, 8}};
constexpr int kPairTaps2[kPairs][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}, {8, -1}};

inline __attribute__((always_inline)) __m256i sum_of(const PackedPixels& packed, const __m256i (&taps)[kPairs]) {
  __m256i sum = _mm256_add_epi32(bias_of(packed), _mm256_madd_epi16(taps[0], weights_of(packed, 0)));
#pragma GCC unroll 4
  for (int i = 1; i < kPairs; ++i) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(taps[i], weights_of(packed, i)));
  return sum;
}

// Stride 1: columns a and b, and the one that each step reads.
struct Window1 {
  static constexpr int kRows = 3, kColumns = 1, kOldColumns = 2;
  __m256i a, b;         // rows 0 and 1
  __m256i below;        // row 2 of a and b
  const uint8_t* last;  // row 2 of b

  explicit Window1(const DepthwiseQ8Strip& s) {
    const Column<3> first = column_at<3>(s, -int64_t{s.window.pad_left});
    const Column<3> second = column_at<3>(s, 1 - int64_t{s.window.pad_left});
    a = pair_of(first.at[0], first.at[1]);
    b = pair_of(second.at[0], second.at[1]);
    below = pair_of(first.at[2], second.at[2]);
    last = second.at[2];
  }

  __attribute__((always_inline)) __m256i step(const Column<3>* column, const PackedPixels& packed) {
    const __m256i c = pair_of(column->at[0], column->at[1]);
    const __m256i next_below = pair_of(last, column->at[2]);
    const __m256i sum = sum_of(packed, {a, b, c, below, next_below});
    a = b;
    b = c;
    below = next_below;
    last = column->at[2];
    return sum;
  }
};

// Stride 2: column a is the last of the pixel before.
struct Window2 {
  static constexpr int kRows = 3, kColumns = 2, kOldColumns = 1;
  __m256i a;
  const uint8_t* last;

  explicit Window2(const DepthwiseQ8Strip& s) {
    const Column<3> first = column_at<3>(s, -int64_t{s.window.pad_left});
    a = pair_of(first.at[0], first.at[1]);
    last = first.at[2];
  }

  __attribute__((always_inline)) __m256i step(const Column<3>* column, const PackedPixels& packed) {
    const uint8_t* const* second = column[0].at;
    const uint8_t* const* third = column[1].at;
    const __m256i c = pair_of(third[0], third[1]);
    const __m256i sum =
        sum_of(packed, {a, pair_of(second[0], second[1]), c, pair_of(last, second[2]), alone(third[2])});
    a = c;
    last = third[2];
    return sum;
  }
};

}  // namespace

void depthwise_u8s8_3x3s1_8c_avx2(const DepthwiseQ8Strip& s) noexcept { walk_pixels<Window1>(s); }
void depthwise_u8s8_3x3s2_8c_avx2(const DepthwiseQ8Strip& s) noexcept { walk_pixels<Window2>(s); }

void pack_depthwise_u8s8_3x3s1_8c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack_pixels(w, first, n, kPairTaps1, kPairs, *static_cast<PackedPixels*>(packed));
}

void pack_depthwise_u8s8_3x3s2_8c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack_pixels(w, first, n, kPairTaps2, kPairs, *static_cast<PackedPixels*>(packed));
}

size_t packed_bytes_depthwise_u8s8_3x3s1_8c_avx2(int32_t, int32_t) { return packed_pixels_bytes(kPairs); }
size_t packed_bytes_depthwise_u8s8_3x3s2_8c_avx2(int32_t, int32_t) { return packed_pixels_bytes(kPairs); }

}  // namespace edgekit::avx2
