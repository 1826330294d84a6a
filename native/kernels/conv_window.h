// The geometry that every convolution shares: what its attributes say about the window, checked against its images.
#ifndef EDGEKIT_KERNELS_CONV_WINDOW_H_
#define EDGEKIT_KERNELS_CONV_WINDOW_H_

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"
#include "kernels/operand_check.h"

namespace edgekit {

struct ConvWindow {
  int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;

  // Input coordinate of the first tap of an output row or column.
  int64_t first_row(int64_t oy) const { return oy * stride_h - pad_top; }
  int64_t first_column(int64_t ox) const { return ox * stride_w - pad_left; }
};

// Attrs: the attribute struct of any convolution.
template <typename Attrs>
ConvWindow conv_window(const Attrs& a) {
  return {a.kernel_h, a.kernel_w, a.stride_h, a.stride_w, a.dilation_h, a.dilation_w, a.pad_top, a.pad_left};
}

// Bounds every attribute, so that all later index arithmetic stays far inside 64 bits. x and y are images of one batch.
inline Status check_conv_window(const ConvWindow& w, const TensorView& x, const TensorView& y) {
  constexpr int64_t kMost = 1 << 16;
  constexpr int64_t kMostPad = 1 << 30;
  EK_RETURN_IF_ERROR(expect_image("x", x));
  EK_RETURN_IF_ERROR(expect_image("y", y));
  EK_RETURN_IF_ERROR(expect_in_range("batch of y", y.dims[0], x.dims[0], x.dims[0]));
  EK_RETURN_IF_ERROR(expect_in_range("kernel_h", w.kernel_h, 1, kMost));
  EK_RETURN_IF_ERROR(expect_in_range("kernel_w", w.kernel_w, 1, kMost));
  EK_RETURN_IF_ERROR(expect_in_range("stride_h", w.stride_h, 1, kMost));
  EK_RETURN_IF_ERROR(expect_in_range("stride_w", w.stride_w, 1, kMost));
  EK_RETURN_IF_ERROR(expect_in_range("dilation_h", w.dilation_h, 1, kMost));
  EK_RETURN_IF_ERROR(expect_in_range("dilation_w", w.dilation_w, 1, kMost));
  EK_RETURN_IF_ERROR(expect_in_range("pad_top", w.pad_top, -kMostPad, kMostPad));
  return expect_in_range("pad_left", w.pad_left, -kMostPad, kMostPad);
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_CONV_WINDOW_H_
