// Square windows of 3, 5 and 7 with dilation 1, stride 1 and 2: two output rows of 64 channels, or of 32 and 16 where
// no more are left. The rows of a run of columns are interleaved into quads in level 1, borders included; then every
// vector of quads meets its weights, two or four pixels of each output row at a time, and the sums become bytes of y
// without leaving registers. A 3x3 window takes three vpdpbusd for 16 channels of a pixel.
#include <cstring>
#include <type_traits>

#include "kernels/depthwise/unit_avx512_vnni.h"

namespace edgekit::avx512_vnni {
namespace {

// Columns of quads of a unit, read one after the other from the left; outside of the image they are x_zero.
template <int kVectors, int kKernel, int kStride, int kOut>
class ColumnReader {
 public:
  using S = QuadShape<kKernel, kStride>;
  using Quads = __m512i[S::kQuads][kVectors];

  // Columns [ix, ix + n).
  ColumnReader(const DepthwiseQ8Strip& s, int32_t base, int64_t ix, int n) {
    const auto column_of = [&](int64_t at) { return static_cast<int>(at < 0 ? 0 : at > n ? n : at); };
    left_ = column_of(-ix);
    inside_ = column_of(s.w - ix) - left_;
    zero_ = s.zero;
    EK_UNROLL(9)
    for (int row = 0; row < kRows; ++row) {
      step_[row] = s.rows[row] == nullptr ? 0 : s.x_step;
      at_[row] = s.rows[row] == nullptr ? s.zero : s.rows[row] + (ix + left_) * s.x_step + base;
    }
  }

  // How many times n columns from `column` on are all inside of the image.
  int inside(int column, int n) const {
    const int columns = left_ + inside_ - column;
    return column < left_ || columns < 0 ? 0 : columns / n;
  }

  // kInside: the column is known to be. Without branches, which would be mispredicted at every border.
  template <bool kInside>
  EK_INLINE void read(int column, Quads& to) {
    const bool inside = kInside || (column >= left_ && column - left_ < inside_);
    const uint8_t* at[kRows];
    EK_UNROLL(9)
    for (int row = 0; row < kRows; ++row) {
      at[row] = inside ? at_[row] : zero_;
      at_[row] += inside ? step_[row] : 0;
    }
    EK_UNROLL(2)
    for (int quad = 0; quad < S::kQuads; ++quad) {
      if (!S::serves(quad, 0) && !(kOut == 2 && S::serves(quad, 1))) continue;
      // A quad's rows behind the last row repeat that one: their weights are 0.
      const auto row = [&](int i) { return at[S::first_row(quad) + i < kRows ? S::first_row(quad) + i : kRows - 1]; };
      Lanes<kVectors>::interleave({row(0), row(1), row(2), row(3)}, to[quad]);
    }
  }

 private:
  static constexpr int kRows = kKernel + (kOut - 1) * kStride;

  int left_, inside_;
  const uint8_t* zero_;
  const uint8_t* at_[kRows];
  int64_t step_[kRows];
};

template <int kVectors, int kKernel, int kStride, int kOut>
class UnitRun {
 public:
  using S = QuadShape<kKernel, kStride>;
  using L = Lanes<kVectors>;
  using Reader = ColumnReader<kVectors, kKernel, kStride, kOut>;
  static constexpr int kChannels = 16 * kVectors;

  UnitRun(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block) : s_(s), block_(block) {
    direct_ = block.count == kChannels && s.requantize->lut == nullptr && !s.requantize->add;
  }

  // Pixels [ox, end).
  void run(int32_t ox, int32_t end) {
    if (direct_) {
      uint8_t* y[kOut];
      for (int row = 0; row < kOut; ++row) y[row] = s_.y[row] + ox * s_.y_step + block_.base;
      sum_pixels(ox, end - ox, y, s_.y_step);
      return;
    }
    alignas(64) uint8_t bytes[kOut][kRunPixels * kChannels];
    for (; ox < end; ox += kRunPixels) {
      const int count = end - ox < kRunPixels ? end - ox : kRunPixels;
      uint8_t* y[kOut];
      for (int row = 0; row < kOut; ++row) y[row] = bytes[row];
      sum_pixels(ox, count, y, kChannels);
      for (int row = 0; row < kOut; ++row) finish_pixels<kVectors>(s_, block_, row, ox, count, bytes[row]);
    }
  }

 private:
  static constexpr int kStep = kVectors == 1 ? 4 : 2;      // pixels that are summed together
  static constexpr int kTogether = kVectors == 1 ? 1 : 2;  // vectors
  static constexpr int kHalves = kVectors == 4 ? 2 : 1;
  static constexpr int kNewColumns = kStep * kStride;
  static constexpr int kStepColumns = (kStep - 1) * kStride + kKernel;
  static constexpr int kBufferSteps = 24 / (S::kQuads * kStride);  // quads take a third of level 1

  // The bytes of pixels [ox, ox + count). Each step reads the columns that the next one adds.
  __attribute__((noinline)) void sum_pixels(int32_t ox, int count, uint8_t* const (&to)[kOut], int64_t y_step) {
    const int steps = (count + kStep - 1) / kStep;
    Reader reader(s_, block_.base, s_.window.first_column(ox), (steps - 1) * kNewColumns + kStepColumns);
    EK_UNROLL(16)
    for (int column = 0; column < kStepColumns; ++column) reader.template read<false>(column, taps_[column]);
    Step step{static_cast<const PackedUnit<kVectors>*>(block_.packed), *s_.requantize, {}, y_step};
    for (int row = 0; row < kOut; ++row) step.y[row] = to[row];
    typename Reader::Quads* columns = taps_;
    const auto advance = [&] {
      columns += kNewColumns;
      if (columns == taps_ + kBufferSteps * kNewColumns) {
        for (int j = 0; j < kStepColumns; ++j) std::memcpy(taps_[j], columns[j], sizeof(taps_[j]));
        columns = taps_;
      }
    };
    const int inside = reader.inside(kStepColumns, kNewColumns);
    int i = 0;
    for (; i < inside; ++i, advance()) {
      EK_UNROLL(8)
      for (int j = 0; j < kNewColumns; ++j) reader.template read<true>(0, columns[kStepColumns + j]);
      step.sum(columns, kStep);
    }
    for (; i < steps; ++i, advance()) {
      EK_UNROLL(8)
      for (int j = 0; j < kNewColumns; ++j) {
        reader.template read<false>(kStepColumns + i * kNewColumns + j, columns[kStepColumns + j]);
      }
      step.sum(columns, count - i * kStep);
    }
  }

  struct Step {
    const PackedUnit<kVectors>* unit;
    const RequantizeQ8& p;
    uint8_t* y[kOut];
    int64_t y_step;
    ByteRange range{p};

    // Stores kStep pixels of each output row, or `count`.
    EK_INLINE void sum(const typename Reader::Quads* columns, int count) {
      __m512i words[kHalves][kOut][2];  // sums 2i and 2i + 1
      EK_UNROLL(2)
      for (int half = 0; half < kHalves; ++half) {
        __m512i sums[kOut][4];
        sum_half(columns, *unit, half, sums);
        EK_UNROLL(8)
        for (int i = 0; i < 4 * kOut; ++i) {
          __m512i& sum = sums[i / 4][i % 4];
          sum = round_scaled(sum, unit->scale + 16 * (2 * half + i % kTogether), p);
        }
        EK_UNROLL(4)
        for (int i = 0; i < 2 * kOut; ++i) {
          words[half][i / 2][i % 2] = pack_words(sums[i / 2][i % 2 * 2], sums[i / 2][i % 2 * 2 + 1], range);
        }
      }
      EK_UNROLL(2)
      for (int row = 0; row < kOut; ++row) {
        if constexpr (kHalves == 2) {
          store(pack_bytes(words[0][row][0], words[1][row][0], range), count, y[row]);
          store(pack_bytes(words[0][row][1], words[1][row][1], range), count - 1, y[row] + y_step);
        } else {
          store(L::order(pack_bytes(words[0][row][0], words[0][row][1], range)), count, y[row]);
        }
        y[row] += kStep * y_step;
      }
    }

    EK_INLINE void store(__m512i bytes, int count, uint8_t* to) const {
      store_pixels<kVectors>(bytes, count, to, y_step);
    }
  };

  // Of each output row four sums, a pixel's vectors side by side: two vectors of two pixels, or one of four. So many
  // chains of vpdpbusd hide its latency.
  static EK_INLINE void sum_half(const typename Reader::Quads* columns, const PackedUnit<kVectors>& unit, int half,
                                 __m512i (&sums)[kOut][4]) {
    EK_UNROLL(8)
    for (int i = 0; i < 4 * kOut; ++i) {
      sums[i / 4][i % 4] = _mm512_loadu_si512(unit.bias + 16 * (2 * half + i % kTogether));
    }
    const int8_t* weights = unit.w + 128 * half;
    EK_UNROLL(2)
    for (int quad = 0; quad < S::kQuads; ++quad) {
      __m512i taps[kStepColumns][kTogether];
      EK_UNROLL(8)
      for (int k = 0; k < kKernel; ++k) {
        EK_UNROLL(8)
        for (int i = 0; i < 4; ++i) {
          const int pixel = i / kTogether, vector = i % kTogether, column = k + pixel * kStride;
          if (pixel < kStep - 1 && k >= kStride) continue;  // read already
          taps[column][vector] = load_once(&columns[column][quad][2 * half + vector]);
        }
        EK_UNROLL(2)
        for (int out = 0; out < 2; ++out) {
          if (!S::serves(quad, out)) continue;
          if (out < kOut) {
            __m512i w[kTogether];
            EK_UNROLL(2)
            for (int vector = 0; vector < kTogether; ++vector) w[vector] = load_once(weights + 64 * vector);
            EK_UNROLL(4)
            for (int i = 0; i < 4; ++i) {
              dot_add(sums[out][i], taps[k + i / kTogether * kStride][i % kTogether], w[i % kTogether]);
            }
          }
          weights += 64 * kVectors;
        }
      }
    }
  }

  const DepthwiseQ8Strip& s_;
  const DepthwiseQ8Block& block_;
  bool direct_;  // bytes go to y as they are
  alignas(64) typename Reader::Quads taps_[kStepColumns + kBufferSteps * kNewColumns];
};

// Calls part(lanes, block) for the units that cover channels [begin, end) of `channels`, the widest first; a unit that
// would reach behind the last channel overlaps the one before. Their packed weights follow one another.
template <typename Part>
void for_each_unit(int32_t begin, int32_t end, int32_t channels, const Part& part) {
  const auto cover = [&](auto lanes, int32_t width) {
    const int32_t base = begin + width <= channels ? begin : channels > width ? channels - width : 0;
    const int32_t first = begin - base;
    const int32_t count = end - begin < width - first ? end - begin : width - first;
    part(lanes, DepthwiseQ8Block{base, first, count, nullptr});
    begin += count;
  };
  while (begin < end) {
    if (end - begin > 48 && channels >= 64) {
      cover(std::integral_constant<int, 4>{}, 64);
    } else if (end - begin > 16 && channels >= 32) {
      cover(std::integral_constant<int, 2>{}, 32);
    } else {
      cover(std::integral_constant<int, 1>{}, 16);
    }
  }
}

constexpr int32_t kBlockChannels = 64;

template <int kKernel, int kStride, int kOut>
void walk_rows(const DepthwiseQ8Strip& s) {
  constexpr size_t kWeights = QuadShape<kKernel, kStride>::weights();
  const std::byte* packed = nullptr;
  const auto walk_unit = [&](auto vectors, DepthwiseQ8Block block) {
    block.packed = packed;
    packed += packed_unit_bytes<vectors>(kWeights);
    using Run = UnitRun<vectors, kKernel, kStride, kOut>;
    Run(s, block).run(s.first_ox, s.last_ox);
  };
  for (int32_t i = s.first_block; i < s.last_block; ++i) {
    const int32_t begin = i * kBlockChannels;
    packed = s.packed + static_cast<size_t>(i) * s.block_bytes;
    for_each_unit(begin, begin + kBlockChannels < s.channels ? begin + kBlockChannels : s.channels, s.channels,
                  walk_unit);
  }
}

template <int kKernel, int kStride>
void walk(const DepthwiseQ8Strip& s) {
  s.out_rows == 1 ? walk_rows<kKernel, kStride, 1>(s) : walk_rows<kKernel, kStride, 2>(s);
}

// The last block is said to begin where it overlaps the one before; its units are those of the channels left.
template <int kKernel, int kStride>
void pack(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) {
  const int32_t begin = (first + kBlockChannels - 1) / kBlockChannels * kBlockChannels;
  auto* to = static_cast<std::byte*>(packed);
  for_each_unit(begin, first + n, w.channels, [&](auto vectors, const DepthwiseQ8Block& block) {
    auto& unit = *reinterpret_cast<PackedUnit<vectors>*>(to);
    const int32_t left = w.channels - block.base;
    pack_columns(w, block.base, left < 16 * vectors ? left : 16 * vectors, unit);
    pack_quads<kKernel, kStride, 16 * vectors>(unit.w, [&](int tap, int i) {
      const int32_t c = Lanes<vectors>::channel(i);
      return c < left ? w.w[int64_t{tap} * w.channels + block.base + c] : int8_t{0};
    });
    to += packed_unit_bytes<vectors>(QuadShape<kKernel, kStride>::weights());
  });
}

template <int kKernel, int kStride>
size_t packed_bytes() {
  return packed_unit_bytes<4>(QuadShape<kKernel, kStride>::weights());
}

}  // namespace

EK_SQUARE_KERNEL(depthwise_u8s8_3x3s1_64c_avx512_vnni, 3, 1)
EK_SQUARE_KERNEL(depthwise_u8s8_3x3s2_64c_avx512_vnni, 3, 2)
EK_SQUARE_KERNEL(depthwise_u8s8_5x5s1_64c_avx512_vnni, 5, 1)
EK_SQUARE_KERNEL(depthwise_u8s8_5x5s2_64c_avx512_vnni, 5, 2)
EK_SQUARE_KERNEL(depthwise_u8s8_7x7s1_64c_avx512_vnni, 7, 1)

}  // namespace edgekit::avx512_vnni
