#include "kernels/gemm/conv_q8_rows.h"

#include <algorithm>

namespace edgekit {
namespace {

const uint8_t* pixel(const TensorView& view, const OutputCursor& at) {
  return view.as<const uint8_t>() + at.n * view.strides[0] + at.oy * view.strides[1] + at.ox * view.strides[2];
}

// Walks neighbouring pixels of one output line.
class LineWalk {
 public:
  LineWalk(const ConvQ8Images& images, int64_t group, const OutputCursor& at)
      : a_(images.source.window_at(at.n, at.oy, at.ox, group)),
        y_(const_cast<uint8_t*>(pixel(images.y, at))),
        residual_(images.residual == nullptr ? nullptr : pixel(*images.residual, at)),
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

// Pixels [at.ox, end) of a line; those in `inner` are direct where their reads stay below x's end. False: no room for
// all of them.
bool provide_line(const ConvQ8Images& images, OutputCursor at, int64_t end, int64_t group, ConvQ8Rows& to) {
  const ConvQ8Source& s = images.source;
  const bool inner_line = at.oy >= images.inner_rows.begin && at.oy < images.inner_rows.end;
  const Span inner = inner_line ? images.inner_columns : Span{0, 0};
  LineWalk walk(images, group, at);
  while (at.ox < end) {
    if (at.ox >= inner.begin && at.ox < inner.end) {
      const int64_t count = walk.readable(std::min(end, inner.end) - at.ox, s.end, images.reach);
      walk.put_direct(to.at, to.direct_count, count);
      to.direct_count += count;
      at.ox += count;
      if (count > 0) continue;
    }
    if (to.packed_count == to.most_packed) return false;
    uint8_t* packed = to.packed + to.packed_count * s.row_bytes();
    pack_window(s, group, at, packed);
    walk.put_packed(to.at, to.most - ++to.packed_count, packed);
    ++at.ox;
  }
  return true;
}

}  // namespace

int64_t provide_rows(const ConvQ8Images& images, Span rows, int64_t group, ConvQ8Rows& to) {
  const ConvQ8Source& s = images.source;
  to.direct_count = to.packed_count = 0;
  OutputCursor at(s, rows.begin);
  for (int64_t left = std::min(rows.end - rows.begin, to.most); left > 0;) {
    const int64_t end = std::min<int64_t>(s.out_w, at.ox + left);
    if (!provide_line(images, at, end, group, to)) break;
    left -= end - at.ox;
    at.next_line(s);
  }
  return to.direct_count + to.packed_count;
}

}  // namespace edgekit
