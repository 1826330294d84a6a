// Where the rows of A of a convolution come from: row m is the window of output pixel m = (n * out_h + oy) * out_w +
// ox, x_zero outside the image. Its depth is kernel_h runs (ky), each the taps and channels (kx, ic) of a kernel row,
// padded to whole depth groups.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_SOURCE_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_SOURCE_H_

#include <cstdint>

#include "kernels/conv_window.h"

namespace edgekit {

// Half open.
struct Span {
  int64_t begin, end;
};

struct ConvQ8Source {
  const uint8_t* x;    // element [0, 0, 0, 0]
  const uint8_t* end;  // one past the highest byte of the view; nothing at or above it is read
  int64_t stride_n, stride_h, stride_w;
  int32_t h, w, out_h, out_w;
  ConvWindow window;
  int32_t channels;    // of one group
  int32_t kg;          // bytes of a depth group
  int64_t run_bytes;   // kernel_w * channels
  int64_t run_groups;  // depth groups of a run
  int32_t x_zero;
  bool joined;  // the taps of a kernel row are one run of bytes

  int64_t depth_groups() const { return window.kernel_h * run_groups; }
  int64_t row_bytes() const { return depth_groups() * kg; }  // of a packed row

  // Whether windows that lie inside the image can be read where they stand: no depth group crosses a gap between taps.
  bool direct() const { return joined || channels % kg == 0; }
  // Where depth groups of such a window lie, from its first byte on; returns how far the last byte read is, plus one.
  int64_t direct_offsets(int64_t* offsets) const;

  // Output rows and columns whose windows lie inside the image.
  Span inner_rows() const;
  Span inner_columns() const;

  const uint8_t* window_at(int64_t n, int64_t oy, int64_t ox, int64_t group) const {
    return x + n * stride_n + window.first_row(oy) * stride_h + window.first_column(ox) * stride_w + group * channels;
  }
};

// x and y: [N, H, W, C]; Attrs of conv_q8.
ConvQ8Source conv_q8_source(const TensorView& x, const TensorView& y, const ConvQ8Attrs& attrs);

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
  void next_line(const ConvQ8Source& s) {
    ox = 0;
    if (++oy < s.out_h) return;
    oy = 0;
    ++n;
  }
};

// Copies the window of an output pixel, row_bytes() of it.
void pack_window(const ConvQ8Source& source, int64_t group, const OutputCursor& at, uint8_t* out);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_SOURCE_H_
