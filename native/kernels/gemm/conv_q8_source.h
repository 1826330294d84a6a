// Where the rows of A of a convolution come from: row m is the window of output pixel m = (n * out_h + oy) * out_w +
// ox, with depth (ky, kx, ic) and x_zero outside the image.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_SOURCE_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_SOURCE_H_

#include <cstdint>

#include "kernels/conv_window.h"

namespace edgekit {

struct ConvQ8Source {
  const uint8_t* x;    // element [0, 0, 0, 0]
  const uint8_t* end;  // one past the highest byte of the view; nothing at or above it is read
  int64_t stride_n, stride_h, stride_w;
  int32_t h, w, out_h, out_w;
  ConvWindow window;
  int32_t channels;      // of one group
  int64_t depth;         // kernel_h * kernel_w * channels
  int64_t padded_depth;  // to a multiple of kg
  int32_t x_zero;
  bool joined;      // the taps of a kernel row are one run of bytes
  bool contiguous;  // all rows of A are one run of bytes: a dense pointwise convolution
};

// Position of an output row, walked in order.
struct OutputCursor {
  int64_t n;
  int32_t oy, ox;

  OutputCursor(const ConvQ8Source& s, int64_t row) {
    ox = static_cast<int32_t>(row % s.out_w);
    const int64_t line = row / s.out_w;
    oy = static_cast<int32_t>(line % s.out_h);
    n = line / s.out_h;
  }
  void next(const ConvQ8Source& s) {
    if (++ox < s.out_w) return;
    ox = 0;
    if (++oy < s.out_h) return;
    oy = 0;
    ++n;
  }
};

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_SOURCE_H_
