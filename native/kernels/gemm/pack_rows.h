// Packs the rows of A; each instruction set instantiates it with its own Copy, a type of its own namespace:
//   Element                                 int16_t or uint8_t
//   run(dst, src, count, end)               count elements; may write 64 bytes of garbage behind them, and may read on
//                                           behind them, but nothing at or above `end`
//   fill(dst, value, count)                 count times value
#ifndef EDGEKIT_KERNELS_GEMM_PACK_ROWS_H_
#define EDGEKIT_KERNELS_GEMM_PACK_ROWS_H_

#include "kernels/gemm/conv_q8_source.h"

namespace edgekit {

// One kernel row (ky) of one row of A; line: the image row at this group's first channel, or null when it lies outside.
template <typename Copy>
typename Copy::Element* pack_taps(const ConvQ8Source& s, const uint8_t* line, int64_t first_ix,
                                  typename Copy::Element* out) {
  const int64_t taps = s.window.kernel_w;
  const int64_t channels = s.channels;
  if (line == nullptr) {
    Copy::fill(out, s.x_zero, taps * channels);
    return out + taps * channels;
  }
  if (!s.joined) {
    for (int64_t kx = 0; kx < taps; ++kx, out += channels) {
      const int64_t ix = first_ix + kx * s.window.dilation_w;
      if (ix < 0 || ix >= s.w) {
        Copy::fill(out, s.x_zero, channels);
      } else {
        Copy::run(out, line + ix * s.stride_w, channels, s.end);
      }
    }
    return out;
  }
  const int64_t left = first_ix >= 0 ? 0 : (-first_ix < taps ? -first_ix : taps);
  const int64_t inside = s.w - first_ix;  // taps from the first on that are not right of the image
  const int64_t right = inside >= taps ? taps : (inside > left ? inside : left);
  if (left > 0) Copy::fill(out, s.x_zero, left * channels);
  if (right > left)
    Copy::run(out + left * channels, line + (first_ix + left) * s.stride_w, (right - left) * channels, s.end);
  if (taps > right) Copy::fill(out + right * channels, s.x_zero, (taps - right) * channels);
  return out + taps * channels;
}

template <typename Copy>
void pack_rows(const ConvQ8Source& s, int64_t group, int64_t first, int64_t count, void* packed) {
  auto* out = static_cast<typename Copy::Element*>(packed);
  if (s.contiguous) {
    Copy::run(out, s.x + first * s.depth, count * s.depth, s.end);
    return;
  }
  OutputCursor at(s, first);
  for (int64_t row = 0; row < count; ++row, at.next(s)) {
    const int64_t first_iy = s.window.first_row(at.oy);
    const int64_t first_ix = s.window.first_column(at.ox);
    const uint8_t* base = s.x + at.n * s.stride_n + group * s.channels;
    for (int64_t ky = 0; ky < s.window.kernel_h; ++ky) {
      const int64_t iy = first_iy + ky * s.window.dilation_h;
      const bool inside = iy >= 0 && iy < s.h;
      out = pack_taps<Copy>(s, inside ? base + iy * s.stride_h : nullptr, first_ix, out);
    }
    Copy::fill(out, 0, s.padded_depth - s.depth);
    out += s.padded_depth - s.depth;
  }
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_PACK_ROWS_H_
