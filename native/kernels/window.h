// The taps of a sliding window along one axis, for convolutions and pools. check_conv_window() bounds what comes here.
#ifndef EDGEKIT_KERNELS_WINDOW_H_
#define EDGEKIT_KERNELS_WINDOW_H_

#include <algorithm>
#include <cstdint>

#include "kernels/conv_window.h"

namespace edgekit {

// Output position o covers input positions o * stride - pad + k * dilation, for k in [0, kernel).
struct WindowAxis {
  int64_t kernel, stride, dilation, pad;
  int64_t position(int64_t o, int64_t k) const { return o * stride - pad + k * dilation; }
};

// Taps [begin, end) of a window.
struct TapRange {
  int64_t begin, end;
  int64_t count() const { return end > begin ? end - begin : 0; }
};

// The taps of output position o that lie inside [0, extent).
inline TapRange taps_inside(const WindowAxis& axis, int64_t o, int64_t extent) {
  const int64_t start = axis.position(o, 0);
  const int64_t begin = start >= 0 ? 0 : (-start + axis.dilation - 1) / axis.dilation;
  const int64_t end = start >= extent ? 0 : (extent - start + axis.dilation - 1) / axis.dilation;
  return {std::min(begin, axis.kernel), std::min(end, axis.kernel)};
}

// How many taps lie before `padded_extent`, the image and its padding at the far end.
inline int64_t taps_padded(const WindowAxis& axis, int64_t o, int64_t padded_extent) {
  const int64_t start = axis.position(o, 0);
  if (start >= padded_extent) return 0;
  return std::min(axis.kernel, (padded_extent - start + axis.dilation - 1) / axis.dilation);
}

// The output positions [begin, end) among `outputs` whose taps all lie inside [0, extent).
inline TapRange whole_windows(const WindowAxis& axis, int64_t outputs, int64_t extent) {
  const int64_t reach = (axis.kernel - 1) * axis.dilation;
  const int64_t begin = axis.pad <= 0 ? 0 : (axis.pad + axis.stride - 1) / axis.stride;
  const int64_t last = extent - 1 - reach + axis.pad;  // the greatest o * stride that fits
  const int64_t end = last < 0 ? 0 : last / axis.stride + 1;
  return {std::min(begin, outputs), std::max(std::min(begin, outputs), std::min(end, outputs))};
}

// The axes of a convolution or pool.
inline WindowAxis vertical_axis(const ConvWindow& window) {
  return {window.kernel_h, window.stride_h, window.dilation_h, window.pad_top};
}
inline WindowAxis horizontal_axis(const ConvWindow& window) {
  return {window.kernel_w, window.stride_w, window.dilation_w, window.pad_left};
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_WINDOW_H_
