// Square windows of 3, 5 and 7 with dilation 1, stride 1 and 2, on NEON without dot products: two output rows of 8
// channels, two pixels of each a step. smull and smlal add the products of two taps in 16 bits, saddw adds them
// into 32. Two products only exceed 16 bits if all four factors are -128: units with two such weights in a pair go tap
// by tap.
#include "kernels/depthwise/unit_neon.h"

namespace edgekit::neon {
namespace {

template <int kKernelSize, int kStrideSize, int kOutRows>
class Window {
 public:
  static constexpr int kKernel = kKernelSize, kStride = kStrideSize, kOut = kOutRows;
  static constexpr int kOldColumns = 0, kLastColumn = kKernel + kStride - 1;  // every step reads all of its columns

  template <typename Pixels>
  void read_old(const Pixels&) {}

  template <typename Pixels>
  __attribute__((always_inline)) void step(const Pixels& pixels, const PackedUnit& unit, PixelSums* first,
                                           PixelSums* second) {
    UnitSums sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kOut; ++i) sums[i] = start_sums(unit);
#pragma GCC unroll 9
    for (int row = 0; row < kKernel + (kOut - 1) * kStride; ++row) {
      if (kKernel > 3) asm("" ::: "memory");  // or GCC would read all rows at once, and spill
      int8x8_t columns[kKernel + kStride];
#pragma GCC unroll 9
      for (int j = 0; j < kKernel + kStride; ++j) columns[j] = load_pixel(pixels.pixel(row, j));
#pragma GCC unroll 2
      for (int out = 0; out < kOut; ++out) {
        const int ky = row - out * kStride;
        if (ky < 0 || ky >= kKernel) continue;
        add_row(columns, unit.w + ky * kKernel * kUnitChannels, sums[2 * out]);
        add_row(columns + kStride, unit.w + ky * kKernel * kUnitChannels, sums[2 * out + 1]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kOut; ++i) {
      PixelSums* row = i < 2 ? first : second;  // named: GCC 12's UBSan mistakes the element of (a ? b : c)[i]
      store_sums(row[i % 2], sums[i]);
    }
  }

 private:
  static __attribute__((always_inline)) void add_row(const int8x8_t* columns, const int8_t* weights, UnitSums& sums) {
#pragma GCC unroll 4
    for (int k = 0; k < kKernel; k += 2) {
      int16x8_t products = vmull_s8(columns[k], vld1_s8(weights + k * kUnitChannels));
      if (k + 1 < kKernel) products = vmlal_s8(products, columns[k + 1], vld1_s8(weights + (k + 1) * kUnitChannels));
      sums.low = vaddw_s16(sums.low, vget_low_s16(products));
      sums.high = vaddw_high_s16(sums.high, products);
    }
  }
};

// A unit whose products do not fit: rare, so plain.
void sum_tap_by_tap(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int32_t ox, int count,
                    PixelSums (&to)[kDepthwiseMostRows][kRunPixels]) {
  const auto& unit = *static_cast<const PackedUnit*>(block.packed);
  for (int i = 0; i < s.out_rows * count; ++i) {
    const int row = i / count, pixel = i % count;
    UnitSums sums = start_sums(unit);
    for (int32_t tap = 0; tap < s.window.kernel_h * s.window.kernel_w; ++tap) {
      const int64_t ix = s.window.first_column(ox + pixel) + tap % s.window.kernel_w;
      const int32_t iy = row * s.window.stride_h + tap / s.window.kernel_w;
      const int16x8_t product =
          vmull_s8(load_pixel(s.pixel(iy, ix) + block.base), vld1_s8(unit.w + tap * kUnitChannels));
      sums.low = vaddw_s16(sums.low, vget_low_s16(product));
      sums.high = vaddw_high_s16(sums.high, product);
    }
    store_sums(to[row][pixel], sums);
  }
}

template <typename OneWindow>
void walk_strip(const DepthwiseQ8Strip& s) {
  const UnitEpilogue epilogue(s);
  RunSums<UnitEpilogue::kUnits, kUnitChannels> run;
  for_each_run(s, run, [&] {
    DepthwiseWalk<OneWindow> walk(s, run.ox, run.count);
    for_each_unit(s, run, epilogue, [&](const DepthwiseQ8Block& block, auto& sums) {
      const auto* unit = static_cast<const PackedUnit*>(block.packed);
      unit->chains ? walk.run(unit, block.base, sums) : sum_tap_by_tap(s, block, run.ox, run.count, sums);
    });
  });
}

template <int kKernel, int kStride>
void walk(const DepthwiseQ8Strip& s) {
  s.out_rows == 1 ? walk_strip<Window<kKernel, kStride, 1>>(s) : walk_strip<Window<kKernel, kStride, 2>>(s);
}

template <int kKernel, int kStride>
void pack(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) {
  auto& unit = *static_cast<PackedUnit*>(packed);
  pack_columns(w, first, n, unit);
  unit.chains = 1;
  for (int32_t tap = 0; tap < kKernel * kKernel; ++tap) {
    int8_t* to = unit.w + tap * kUnitChannels;
    for (int32_t c = 0; c < kUnitChannels; ++c) {
      to[c] = c < n ? w.w[int64_t{tap} * w.channels + first + c] : int8_t{0};
      const bool paired = tap % kKernel % 2 == 1;
      if (paired && to[c] == -128 && to[c - kUnitChannels] == -128) unit.chains = 0;
    }
  }
}

template <int kKernel, int kStride>
size_t packed_bytes() {
  return packed_unit_bytes(kKernel * kKernel * kUnitChannels);
}

}  // namespace

EK_SQUARE_KERNEL(depthwise_s8s8_3x3s1_8c_neon, 3, 1)
EK_SQUARE_KERNEL(depthwise_s8s8_3x3s2_8c_neon, 3, 2)
EK_SQUARE_KERNEL(depthwise_s8s8_5x5s1_8c_neon, 5, 1)
EK_SQUARE_KERNEL(depthwise_s8s8_5x5s2_8c_neon, 5, 2)
EK_SQUARE_KERNEL(depthwise_s8s8_7x7s1_8c_neon, 7, 1)

}  // namespace edgekit::neon
