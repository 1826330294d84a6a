#include "kernels/gemm/conv_q8_padding.h"

#include <algorithm>
#include <cstring>

namespace edgekit {
namespace {

// Every group reads all of a copy's cache lines, which therefore should stay in the first-level cache, but a line of
// windows may need more.
constexpr int64_t kCopyBytes = 32 * 1024;
constexpr int64_t kMostCopyBytes = 512 * 1024;

// Lines of x that `lines` lines of y reach.
int64_t reached_lines(const ConvWindow& window, int64_t lines) {
  return (lines - 1) * window.stride_h + int64_t{window.kernel_h - 1} * window.dilation_h + 1;
}

bool is_covered(const Span& inner, int64_t outputs) { return inner.begin == 0 && inner.end == outputs; }

}  // namespace

ConvQ8Padding conv_q8_padding(const ConvQ8Source& s, int64_t groups) {
  const bool all_inside = is_covered(s.inner_rows(), s.out_h) && is_covered(s.inner_columns(), s.out_w);
  if (groups == 1 || s.channels % s.kg != 0 || all_inside) return {};
  const ConvWindow& w = s.window;
  ConvQ8Padding padding{};
  padding.columns = (int64_t{s.out_w} - 1) * w.stride_w + int64_t{w.kernel_w - 1} * w.dilation_w + 1;
  padding.channels = groups * s.channels;
  if (padding.columns > kMostCopyBytes / padding.channels) return {};
  const int64_t line = padding.line_bytes(), least = reached_lines(w, 1);
  if (least > kMostCopyBytes / line) return {};
  padding.lines = std::clamp<int64_t>(1 + (kCopyBytes / line - least) / w.stride_h, 1, s.out_h);
  padding.bytes = reached_lines(w, padding.lines) * line;
  return padding;
}

void copy_padded(const ConvQ8Source& s, const ConvQ8Padding& padding, int64_t n, int64_t first, int64_t count,
                 uint8_t* to) {
  const int64_t first_ix = s.window.first_column(0), channels = padding.channels;
  const int64_t left = std::clamp<int64_t>(-first_ix, 0, padding.columns);
  const int64_t right = std::clamp<int64_t>(s.w - first_ix, left, padding.columns);
  const auto put = [&](int64_t column, int64_t columns) {
    std::memset(to + column * channels, s.x_zero & 0xff, static_cast<size_t>(columns * channels));
  };
  const int64_t first_iy = s.window.first_row(first), end = first_iy + reached_lines(s.window, count);
  for (int64_t iy = first_iy; iy < end; ++iy, to += padding.line_bytes()) {
    if (iy < 0 || iy >= s.h) {
      put(0, padding.columns);
      continue;
    }
    put(0, left);
    put(right, padding.columns - right);
    const uint8_t* from = s.x + n * s.stride_n + iy * s.stride_h + (first_ix + left) * s.stride_w;
    const int64_t step = s.stride_w == channels ? right - left : 1;  // columns of a move
    for (int64_t column = left; column < right; column += step, from += step * s.stride_w) {
      std::memcpy(to + column * channels, from, static_cast<size_t>(step * channels));
    }
  }
}

void padded_offsets(const ConvQ8Source& s, const ConvQ8Padding& padding, int64_t* offsets) {
  const ConvWindow& w = s.window;
  for (int64_t ky = 0; ky < w.kernel_h; ++ky) {
    for (int64_t group = 0; group < s.run_groups; ++group, ++offsets) {
      const int64_t byte = group * s.kg, column = byte / s.channels * w.dilation_w;
      *offsets = ky * w.dilation_h * padding.line_bytes() + column * padding.channels + byte % s.channels;
    }
  }
}

void provide_padded_rows(const ConvQ8Images& images, const ConvQ8Padding& padding, Span rows, const uint8_t* copy,
                         const RowPointers& to) {
  const ConvQ8Source& s = images.source;
  OutputCursor at(s, rows.begin);
  const int64_t line = s.window.stride_h * padding.line_bytes(), column = s.window.stride_w * padding.channels;
  for (int64_t row = 0, left = rows.end - rows.begin; left > 0; copy += line, at.next_line(s)) {
    const int64_t count = std::min<int64_t>(s.out_w - at.ox, left);
    const uint8_t* y = output_pixel(images.y, at);
    const uint8_t* residual = images.residual == nullptr ? nullptr : output_pixel(*images.residual, at);
    for (int64_t i = 0; i < count; ++i, ++row) {
      to.a[row] = copy + (at.ox + i) * column;
      to.y[row] = const_cast<uint8_t*>(y + i * images.y.strides[2]);
      if (residual != nullptr) to.residual[row] = residual + i * images.residual->strides[2];
    }
    left -= count;
  }
}

}  // namespace edgekit
