// Square windows of 3, 5 and 7 with dilation 1, stride 1 and 2: two output rows of 64 channels, or of 32 and 16 where
// no more are left. The rows of a run of columns are interleaved into quads in level 1, borders included; then every
// vector of quads meets its weights, two or four pixels of each output row at a time, and the sums become bytes of y
// without leaving registers. A 3x3 window takes three vpdpbusd for 16 channels of a pixel.
#include "kernels/depthwise/unit_avx512_vnni.h"

namespace edgekit::avx512_vnni {
namespace {

template <int kVectors, int kKernel, int kStride, int kOut>
class UnitRun {
 public:
  using S = QuadShape<kKernel, kStride>;
  using L = Lanes<kVectors>;
  static constexpr int kChannels = 16 * kVectors;
  static constexpr int kPixels = 32 / (S::kQuads * kStride);  // of one output row: quads take a quarter of level 1

  UnitRun(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block)
      : s_(s), block_(block), unit_(*static_cast<const PackedUnit<kVectors>*>(block.packed)) {
    direct_ = block.count == kChannels && s.requantize->lut == nullptr && !s.requantize->add;
  }

  // Pixels [ox, ox + count).
  void run(int32_t ox, int count) {
    const int steps = (count + kStep - 1) / kStep;
    read_columns(s_.window.first_column(ox), (steps * kStep - 1) * kStride + kKernel);
    if (direct_) {
      uint8_t* y[kOut];
      for (int row = 0; row < kOut; ++row) y[row] = s_.y[row] + ox * s_.y_step + block_.base;
      sum_pixels(count, y, s_.y_step);
      return;
    }
    alignas(64) uint8_t bytes[kOut][kPixels * kChannels];
    uint8_t* y[kOut];
    for (int row = 0; row < kOut; ++row) y[row] = bytes[row];
    sum_pixels(steps * kStep, y, kChannels);
    for (int row = 0; row < kOut; ++row) finish_pixels<kVectors>(s_, block_, row, ox, count, bytes[row]);
  }

 private:
  static constexpr int kStep = kVectors == 1 ? 4 : 2;  // pixels that are summed together
  static constexpr int kRows = kKernel + (kOut - 1) * kStride;
  static constexpr int kColumns = (kPixels - 1) * kStride + kKernel;
  static constexpr int kStepColumns = (kStep - 1) * kStride + kKernel;

  static constexpr bool used(int quad) { return S::serves(quad, 0) || (kOut == 2 && S::serves(quad, 1)); }

  // The quads of columns [ix, ix + n).
  void read_columns(int64_t ix, int n) {
    const auto column_of = [&](int64_t at) { return static_cast<int>(at < 0 ? 0 : at > n ? n : at); };
    const int left = column_of(-ix), right = column_of(s_.w - ix);
    const uint8_t* at[kRows];
    int64_t step[kRows];
    for (int row = 0; row < kRows; ++row) {
      step[row] = s_.rows[row] == nullptr ? 0 : s_.x_step;
      at[row] = s_.rows[row] == nullptr ? s_.zero : s_.rows[row] + (ix + left) * s_.x_step + block_.base;
    }
    for (int column = 0; column < left; ++column) fill_column(column);
    for (int column = left; column < right; ++column) {
      read_column(column, at);
#pragma GCC unroll 9
      for (int row = 0; row < kRows; ++row) at[row] += step[row];
    }
    for (int column = right < left ? left : right; column < n; ++column) fill_column(column);
  }

  void fill_column(int column) {
    const __m512i zero = _mm512_set1_epi8(static_cast<char>(*s_.zero));
    for (auto& quad : taps_[column]) {
      for (__m512i& taps : quad) taps = zero;
    }
  }

  // A quad's rows behind the last row repeat that one: their weights are 0.
  __attribute__((always_inline)) void read_column(int column, const uint8_t* const (&at)[kRows]) {
#pragma GCC unroll 2
    for (int quad = 0; quad < S::kQuads; ++quad) {
      if (!used(quad)) continue;
      const auto row = [&](int i) {
        const int r = S::first_row(quad) + i;
        return at[r < kRows ? r : kRows - 1];
      };
      L::interleave({row(0), row(1), row(2), row(3)}, taps_[column][quad]);
    }
  }

  void sum_pixels(int count, uint8_t* const (&y)[kOut], int64_t y_step) const;

  // The sums of one vector of channels: of kStep pixels of each output row.
  __attribute__((always_inline)) void sum_vector(int first_column, int vector, __m512i (&sums)[kOut][kStep]) const {
    const __m512i bias = _mm512_loadu_si512(unit_.bias + 16 * vector);
#pragma GCC unroll 8
    for (int i = 0; i < kOut * kStep; ++i) sums[i / kStep][i % kStep] = bias;
    const int8_t* weights = unit_.w + 64 * vector;
#pragma GCC unroll 2
    for (int quad = 0; quad < S::kQuads; ++quad) {
      __m512i taps[kStepColumns];
#pragma GCC unroll 16
      for (int j = 0; j < kStepColumns; ++j) taps[j] = taps_[first_column + j][quad][vector];
#pragma GCC unroll 8
      for (int k = 0; k < kKernel; ++k) {
#pragma GCC unroll 2
        for (int out = 0; out < 2; ++out) {
          if (!S::serves(quad, out)) continue;
          const __m512i w = _mm512_loadu_si512(weights);
          weights += 64 * kVectors;
          if (out >= kOut) continue;
#pragma GCC unroll 4
          for (int pixel = 0; pixel < kStep; ++pixel) dot_add(sums[out][pixel], taps[k + pixel * kStride], w);
        }
      }
    }
  }

  const DepthwiseQ8Strip& s_;
  const DepthwiseQ8Block& block_;
  const PackedUnit<kVectors>& unit_;
  bool direct_;  // bytes go to y as they are
  alignas(64) __m512i taps_[kColumns][S::kQuads][kVectors];
};

// The bytes of the run's first pixels, of which `count` exist in y.
template <int kVectors, int kKernel, int kStride, int kOut>
__attribute__((noinline)) void UnitRun<kVectors, kKernel, kStride, kOut>::sum_pixels(int count,
                                                                                     uint8_t* const (&y)[kOut],
                                                                                     int64_t y_step) const {
  const RequantizeQ8& p = *s_.requantize;
  for (int first = 0; first < count; first += kStep) {
    __m512i rounded[kOut][kStep * kVectors];  // a pixel's vectors side by side
#pragma GCC unroll 4
    for (int vector = 0; vector < kVectors; ++vector) {
      __m512i sums[kOut][kStep];
      sum_vector(first * kStride, vector, sums);
#pragma GCC unroll 8
      for (int i = 0; i < kOut * kStep; ++i) {
        const int row = i / kStep, pixel = i % kStep;
        rounded[row][pixel * kVectors + vector] = round_scaled(sums[row][pixel], unit_.scale + 16 * vector, p);
      }
    }
#pragma GCC unroll 2
    for (int row = 0; row < kOut; ++row) {
#pragma GCC unroll 2
      for (int pixel = 0; pixel < kStep; pixel += L::kPixels) {
        const __m512i* v = rounded[row] + pixel * kVectors;
        store_pixels<kVectors>(L::order(pack_lanes({v[0], v[1], v[2], v[3]}, p)), count - first - pixel,
                               y[row] + (first + pixel) * y_step, y_step);
      }
    }
  }
}

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
    Run run(s, block);
    for (int32_t ox = s.first_ox; ox < s.last_ox; ox += Run::kPixels) {
      run.run(ox, s.last_ox - ox < Run::kPixels ? s.last_ox - ox : Run::kPixels);
    }
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

}  // namespace

#define EK_SQUARE(name, kernel, stride)                                                            \
  void name(const DepthwiseQ8Strip& strip) noexcept { walk<kernel, stride>(strip); }               \
  void pack_##name(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept { \
    pack<kernel, stride>(w, first, n, packed);                                                     \
  }                                                                                                \
  size_t packed_bytes_##name(int32_t, int32_t) { return packed_unit_bytes<4>(QuadShape<kernel, stride>::weights()); }
EK_SQUARE(depthwise_u8s8_3x3s1_64c_avx512_vnni, 3, 1)
EK_SQUARE(depthwise_u8s8_3x3s2_64c_avx512_vnni, 3, 2)
EK_SQUARE(depthwise_u8s8_5x5s1_64c_avx512_vnni, 5, 1)
EK_SQUARE(depthwise_u8s8_5x5s2_64c_avx512_vnni, 5, 2)
EK_SQUARE(depthwise_u8s8_7x7s1_64c_avx512_vnni, 7, 1)
#undef EK_SQUARE

}  // namespace edgekit::avx512_vnni
