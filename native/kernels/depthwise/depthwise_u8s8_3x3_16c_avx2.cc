// 3x3, dilation 1, stride 1 and 2: one output row of 16 channels, walking to the right. The pairs of a column (rows 0
// and 1) stay in registers while it passes through the window; row 2 pairs with its right neighbour. Five vpmaddwd of 8
// channels for nine taps.
#include "kernels/depthwise/block_avx2.h"

namespace edgekit::avx2 {
namespace {

// Taps are numbered ky * 3 + kx. The last pair serves column 2 of row 2: behind column 1 (stride 1) or itself (stride
// 2).
constexpr int kPairs = 5;
constexpr int kPairTaps1[kPairs][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}, {-1, 8}};
constexpr int kPairTaps2[kPairs][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}, {8, -1}};

struct Column {
  Pairs upper;    // rows 0 and 1
  __m256i lower;  // row 2, widened
};

// Reads columns one after the other, x_zero outside the image.
class ColumnReader {
 public:
  explicit ColumnReader(const DepthwiseQ8Strip& s) : zero_(s.zero), w_(s.w), ix_(-int64_t{s.window.pad_left}) {
    for (int r = 0; r < 3; ++r) {
      step_[r] = s.steps[r];
      at_[r] = s.rows[r] + ix_ * step_[r];
    }
  }

  Column next() {
    const bool inside = static_cast<uint64_t>(ix_) < static_cast<uint64_t>(w_);
    ++ix_;
    const Column column = inside ? column_at(at_[0], at_[1], at_[2]) : column_at(zero_, zero_, zero_);
    for (int r = 0; r < 3; ++r) at_[r] += step_[r];
    return column;
  }

 private:
  static Column column_at(const uint8_t* row0, const uint8_t* row1, const uint8_t* row2) {
    return {interleave(widen_16(row0), widen_16(row1)), widen_16(row2)};
  }

  const uint8_t* at_[3];
  int64_t step_[3];
  const uint8_t* zero_;
  int64_t w_, ix_;
};

// The window at stride 1: columns a, b, then the new one.
struct Window1 {
  Column a, b;
  Pairs below;  // row 2 of a and b

  Sums16 step(ColumnReader& reader, const PackedBlock& block) {
    const Column c = reader.next();
    const Pairs next_below = interleave(b.lower, c.lower);
    Sums16 sums = load_bias(block);
    multiply_add(sums, a.upper, block, 0);
    multiply_add(sums, b.upper, block, 1);
    multiply_add(sums, c.upper, block, 2);
    multiply_add(sums, below, block, 3);
    multiply_add(sums, next_below, block, 4);
    a = b;
    b = c;
    below = next_below;
    return sums;
  }
};

// The window at stride 2: column a is the last of the one before.
struct Window2 {
  Column a;

  Sums16 step(ColumnReader& reader, const PackedBlock& block) {
    const Column b = reader.next();
    const Column c = reader.next();
    Sums16 sums = load_bias(block);
    multiply_add(sums, a.upper, block, 0);
    multiply_add(sums, b.upper, block, 1);
    multiply_add(sums, c.upper, block, 2);
    multiply_add(sums, interleave(a.lower, b.lower), block, 3);
    multiply_add(sums, interleave(c.lower, c.lower), block, 4);
    a = c;
    return sums;
  }
};

template <typename Window>
void walk(const DepthwiseQ8Strip& s, ColumnReader& reader, Window window) {
  const auto& block = *static_cast<const PackedBlock*>(s.packed);
  int32_t ox = 0;
  for (; ox + 2 <= s.out_w; ox += 2) {
    const Sums16 first = window.step(reader, block);
    const Sums16 second = window.step(reader, block);
    finish_pixels(s, first, second, ox, true);
  }
  if (ox == s.out_w) return;
  const Sums16 last = window.step(reader, block);
  finish_pixels(s, last, last, ox, false);
}

size_t packed_bytes() { return (sizeof(PackedBlock) + kPairs * 32 * sizeof(int16_t) + 63) / 64 * 64; }

}  // namespace

void depthwise_u8s8_3x3s1_16c_avx2(const DepthwiseQ8Strip& s) noexcept {
  ColumnReader reader(s);
  Window1 window;
  window.a = reader.next();
  window.b = reader.next();
  window.below = interleave(window.a.lower, window.b.lower);
  walk(s, reader, window);
}

void depthwise_u8s8_3x3s2_16c_avx2(const DepthwiseQ8Strip& s) noexcept {
  ColumnReader reader(s);
  Window2 window;
  window.a = reader.next();
  walk(s, reader, window);
}

void pack_depthwise_u8s8_3x3s1_16c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack_block(w, first, n, kPairTaps1, kPairs, *static_cast<PackedBlock*>(packed));
}

void pack_depthwise_u8s8_3x3s2_16c_avx2(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept {
  pack_block(w, first, n, kPairTaps2, kPairs, *static_cast<PackedBlock*>(packed));
}

size_t packed_bytes_depthwise_u8s8_3x3s1_16c_avx2(int32_t, int32_t) { return packed_bytes(); }
size_t packed_bytes_depthwise_u8s8_3x3s2_16c_avx2(int32_t, int32_t) { return packed_bytes(); }

}  // namespace edgekit::avx2
