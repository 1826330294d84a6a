// 3x3, dilation 1, stride 1 and 2: one output row of 16 channels, walking to the right. Rows 0 and 1 of a column make a
// pair, row 2 pairs with the next column: five vpmaddwd for nine taps. What the next pixel needs stays in registers.
#include "kernels/depthwise/block_avx2.h"

namespace edgekit::avx2 {
namespace {

// Taps are ky * 3 + kx.
constexpr int kPairs = 5;
constexpr int kPairTaps1[kPairs][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}, {-1, 8}};
constexpr int kPairTaps2[kPairs][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}, {8, -1}};

// Stride 1: columns a and b, and the one that each step reads.
struct Window1 {
  static constexpr int kRows = 3, kColumns = 1, kOldColumns = 2;
  Pairs a, b;    // rows 0 and 1
  Pairs below;   // row 2 of a and b
  __m256i last;  // row 2 of b

  explicit Window1(const DepthwiseQ8Strip& s) {
    const Column<3> first = column_at<3>(s, -int64_t{s.window.pad_left});
    const Column<3> second = column_at<3>(s, 1 - int64_t{s.window.pad_left});
    a = interleave(widen_16(first.at[0]), widen_16(first.at[1]));
    b = interleave(widen_16(second.at[0]), widen_16(second.at[1]));
    last = widen_16(second.at[2]);
    below = interleave(widen_16(first.at[2]), last);
  }

  __attribute__((always_inline)) void step(const Column<3>* column, const PackedBlock& block, __m256i& low,
                                           __m256i& high) {
    start_sums(block, low, high);
    multiply_add(low, high, a, block, 0);
    multiply_add(low, high, b, block, 1);
    multiply_add(low, high, below, block, 3);
    const Pairs c = interleave(widen_16(column->at[0]), widen_16(column->at[1]));
    const __m256i next = widen_16(column->at[2]);
    multiply_add(low, high, c, block, 2);
    below = interleave(last, next);
    multiply_add(low, high, below, block, 4);
    a = b;
    b = c;
    last = next;
  }
};

// Stride 2: column a is the last of the pixel before.
struct Window2 {
  static constexpr int kRows = 3, kColumns = 2, kOldColumns = 1;
  Pairs a;
  __m256i last;

  explicit Window2(const DepthwiseQ8Strip& s) {
    const Column<3> first = column_at<3>(s, -int64_t{s.window.pad_left});
    a = interleave(widen_16(first.at[0]), widen_16(first.at[1]));
    last = widen_16(first.at[2]);
  }

  __attribute__((always_inline)) void step(const Column<3>* column, const PackedBlock& block, __m256i& low,
                                           __m256i& high) {
    const uint8_t* const* second = column[0].at;
    const uint8_t* const* third = column[1].at;
    start_sums(block, low, high);
    multiply_add(low, high, a, block, 0);
    multiply_add(low, high, interleave(widen_16(second[0]), widen_16(second[1])), block, 1);
    multiply_add(low, high, interleave(last, widen_16(second[2])), block, 3);
    a = interleave(widen_16(third[0]), widen_16(third[1]));
    multiply_add(low, high, a, block, 2);
    last = widen_16(third[2]);
    multiply_add(low, high, interleave(last, _mm256_setzero_si256()), block, 4);
  }
};

}  // namespace

void depthwise_u8s8_3x3s1_16c_avx2(const DepthwiseQ8Strip& s) noexcept { walk_row<Window1>(s); }
void depthwise_u8s8_3x3s2_16c_avx2(const DepthwiseQ8Strip& s) noexcept { walk_row<Window2>(s); }

void pack_depthwise_u8s8_3x3s1_16c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack_block(w, first, n, kPairTaps1, kPairs, *static_cast<PackedBlock*>(packed));
}

void pack_depthwise_u8s8_3x3s2_16c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack_block(w, first, n, kPairTaps2, kPairs, *static_cast<PackedBlock*>(packed));
}

size_t packed_bytes_depthwise_u8s8_3x3s1_16c_avx2(int32_t, int32_t) { return packed_block_bytes(kPairs); }
size_t packed_bytes_depthwise_u8s8_3x3s2_16c_avx2(int32_t, int32_t) { return packed_block_bytes(kPairs); }

}  // namespace edgekit::avx2
