// The rows of a block: which of them are read where they stand in x, and which from packed copies.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_ROWS_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/conv_q8_source.h"

namespace edgekit {

// Per row: its A, its pixel of y and of the residual (undefined without one), both at channel 0.
struct RowPointers {
  const uint8_t** a;
  uint8_t** y;
  const uint8_t** residual;
};

// Rows of A, y and residual, direct ones from the front, packed ones from the back.
struct ConvQ8Rows {
  RowPointers at;   // room for `most` rows
  uint8_t* packed;  // room for `most_packed` of them
  int64_t most;
  int64_t most_packed;
  int64_t direct_count;
  int64_t packed_count;  // the last ones of `at`
};

struct ConvQ8Images {
  const ConvQ8Source& source;
  const TensorView& y;
  const TensorView* residual;      // null: none
  Span inner_rows, inner_columns;  // empty: every row is packed
  int64_t reach;                   // bytes that a direct row reads from its start on
};

inline const uint8_t* output_pixel(const TensorView& view, const OutputCursor& at) {
  return view.as<const uint8_t>() + at.n * view.strides[0] + at.oy * view.strides[1] + at.ox * view.strides[2];
}

// Walks neighbouring pixels of one output line.
class LineWalk {
 public:
  LineWalk(const ConvQ8Images& images, int64_t group, const OutputCursor& at)
      : a_(images.source.window_at(at.n, at.oy, at.ox, group)),
        y_(const_cast<uint8_t*>(output_pixel(images.y, at))),
        residual_(images.residual == nullptr ? nullptr : output_pixel(*images.residual, at)),
        a_step_(images.source.stride_w * images.source.window.stride_w),
        y_step_(images.y.strides[2]),
        residual_step_(images.residual == nullptr ? 0 : images.residual->strides[2]) {}

  // Of the next `left` windows those that lie in x altogether: the last ones of an image may read beyond its end.
  int64_t readable(int64_t left, const uint8_t* end, int64_t reach) const {
    const int64_t room = end - a_ - reach;
    if (room < 0) return 0;
    return a_step_ > 0 ? std::min(left, room / a_step_ + 1) : left;
  }

  // The next pixel, from a copy of its window.
  void put_packed(const RowPointers& to, int64_t row, const uint8_t* window) {
    to.a[row] = window;
    to.y[row] = y_;
    to.residual[row] = residual_;
    step(1);
  }

  // The next `count` pixels, from where they stand.
  void put_direct(const RowPointers& to, int64_t row, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to.a[row + i] = a_ + i * a_step_;
    for (int64_t i = 0; i < count; ++i) to.y[row + i] = y_ + i * y_step_;
    if (residual_ != nullptr) {
      for (int64_t i = 0; i < count; ++i) to.residual[row + i] = residual_ + i * residual_step_;
    }
    step(count);
  }

 private:
  void step(int64_t count) {
    a_ += count * a_step_;
    y_ += count * y_step_;
    residual_ += count * residual_step_;
  }

  const uint8_t* a_;  // not read where the window leaves the image
  uint8_t* y_;
  const uint8_t* residual_;
  const int64_t a_step_, y_step_, residual_step_;
};

// Output rows of one group, as many as there is room for; returns how many.
int64_t provide_rows(const ConvQ8Images& images, Span rows, int64_t group, ConvQ8Rows& to);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_ROWS_H_
