// Square windows for instructions that multiply four taps of a channel at once (vpdpbusd, sdot): bytes of four input
// rows are interleaved, so that each 32-bit lane holds a column of one channel. Such a quad serves every output pixel
// it takes part in, with the weights of its place in that pixel's window and 0 elsewhere: for 3x3 with stride 1,
// (w0, w1, w2, 0) for one output row and (0, w0, w1, w2) for the next.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_QUADS_H_
#define EDGEKIT_KERNELS_DEPTHWISE_QUADS_H_

#include "kernels/depthwise/walk.h"

namespace edgekit {

// Which rows make quads. With 3x3 and stride 2 each output row has a quad of its own, else both share all.
template <int kKernel, int kStride>
struct QuadShape {
  static constexpr int kInputRows = kKernel + kStride;
  static constexpr bool kOwnQuads = kKernel == 3 && kStride == 2;
  static constexpr int kQuads = kOwnQuads ? 2 : (kInputRows + 3) / 4;

  static constexpr int first_row(int quad) { return kOwnQuads ? quad * kStride : quad * 4; }
  // The kernel row of a quad's row in the window of an output row; -1: outside of it.
  static constexpr int kernel_row(int quad, int row, int out) {
    const int ky = first_row(quad) + row - out * kStride;
    return ky >= 0 && ky < kKernel ? ky : -1;
  }
  static constexpr bool serves(int quad, int out) {
    if (kOwnQuads) return quad == out;
    return kernel_row(quad, 0, out) >= 0 || kernel_row(quad, 1, out) >= 0 || kernel_row(quad, 2, out) >= 0 ||
           kernel_row(quad, 3, out) >= 0;
  }
  static constexpr size_t weights() {  // quads of weights
    size_t count = 0;
    for (int i = 0; i < kQuads; ++i) count += kKernel * ((serves(i, 0) ? 1 : 0) + (serves(i, 1) ? 1 : 0));
    return count;
  }
};

// Simd: Taps (the quads of a column), Sums (of a pixel), kTapBytes (of packed weights), and
//   start(unit), read(r0, r1, r2, r3), multiply_add(sums, taps, weights), store(to, sums)
template <typename Simd, int kKernelSize, int kStrideSize, int kOutRows>
class QuadWindow {
 public:
  static constexpr int kKernel = kKernelSize, kStride = kStrideSize, kOut = kOutRows;
  using S = QuadShape<kKernel, kStride>;
  static constexpr int kOldColumns = kKernel - kStride, kLastColumn = kKernel + kStride - 1;

  template <typename Pixels>
  __attribute__((always_inline)) void read_old(const Pixels& pixels) {
#pragma GCC unroll 8
    for (int i = 0; i < S::kQuads; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kOldColumns; ++j) {
        if (used(i)) taps_[i][j] = column(pixels, i, j);
      }
    }
  }

  template <typename Pixels, typename Unit, typename PixelSums>
  __attribute__((always_inline)) void step(const Pixels& pixels, const Unit& unit, PixelSums* first,
                                           PixelSums* second) {
    typename Simd::Sums sums[4];
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kOut; ++i) sums[i] = Simd::start(unit);
    const int8_t* weights = unit.w;
#pragma GCC unroll 8
    for (int i = 0; i < S::kQuads; ++i) {
      if (kKernel > 3) asm("" ::: "memory");  // or GCC would read all quads at once, and spill
      read_new(pixels, i);
      multiply(i, weights, sums);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 2 * kOut; ++i) {
      PixelSums* row = i < 2 ? first : second;  // named: GCC 12's UBSan mistakes the element of (a ? b : c)[i]
      Simd::store(row[i % 2], sums[i]);
    }
  }

 private:
  static constexpr bool used(int quad) { return S::serves(quad, 0) || (kOut == 2 && S::serves(quad, 1)); }

  // A quad's rows behind the last row repeat that one: their weights are 0.
  template <typename Pixels>
  static __attribute__((always_inline)) typename Simd::Taps column(const Pixels& pixels, int quad, int j) {
    constexpr int kLast = kKernel + (kOut - 1) * kStride - 1;
    const int row = S::first_row(quad);
    const auto at = [&](int i) { return pixels.pixel(row + i < kLast ? row + i : kLast, j); };
    return Simd::read(at(0), at(1), at(2), at(3));
  }

  template <typename Pixels>
  __attribute__((always_inline)) void read_new(const Pixels& pixels, int quad) {
    if (!used(quad)) return;
#pragma GCC unroll 8
    for (int j = kOldColumns; j < kKernel + kStride; ++j) taps_[quad][j] = column(pixels, quad, j);
  }

  __attribute__((always_inline)) void multiply(int quad, const int8_t*& weights, typename Simd::Sums (&sums)[4]) {
    auto& taps = taps_[quad];
#pragma GCC unroll 8
    for (int k = 0; k < kKernel; ++k) {
#pragma GCC unroll 2
      for (int out = 0; out < 2; ++out) {
        if (!S::serves(quad, out)) continue;
        if (out < kOut) {
          Simd::multiply_add(sums[2 * out], taps[k], weights);
          Simd::multiply_add(sums[2 * out + 1], taps[k + kStride], weights);
        }
        weights += Simd::kTapBytes;
      }
    }
    if (!used(quad)) return;
#pragma GCC unroll 8
    for (int j = 0; j < kOldColumns; ++j) taps[j] = taps[j + 2 * kStride];
  }

  typename Simd::Taps taps_[S::kQuads][kKernel + kStride];
};

// Packs the weights of a unit of kChannels channels, four bytes a channel, in the order in which a step reads them.
// weight(tap, channel) gives one, with 0 for channels that do not exist.
template <int kKernel, int kStride, int kChannels, typename Weight>
void pack_quads(int8_t* to, const Weight& weight) {
  using S = QuadShape<kKernel, kStride>;
  for (int quad = 0; quad < S::kQuads; ++quad) {
    for (int k = 0; k < kKernel; ++k) {
      for (int out = 0; out < 2; ++out) {
        if (!S::serves(quad, out)) continue;
        for (int c = 0; c < kChannels; ++c) {
          for (int row = 0; row < 4; ++row) {
            const int ky = S::kernel_row(quad, row, out);
            *to++ = ky >= 0 ? weight(ky * kKernel + k, c) : int8_t{0};
          }
        }
      }
    }
  }
}

// Computes a strip. Simd, Unit, Epilogue: as QuadWindow and walk_units have them.
template <typename Simd, typename Unit, typename Epilogue, int kKernel, int kStride>
void walk_quads(const DepthwiseQ8Strip& s) {
  s.out_rows == 1 ? walk_units<QuadWindow<Simd, kKernel, kStride, 1>, Unit, Epilogue>(s)
                  : walk_units<QuadWindow<Simd, kKernel, kStride, 2>, Unit, Epilogue>(s);
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_DEPTHWISE_QUADS_H_
