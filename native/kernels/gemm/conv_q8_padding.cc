#include "kernels/gemm/conv_q8_padding.h"

#include <algorithm>
#include <cstring>

namespace edgekit {
namespace {

// Every group reads all of a copy's cache lines, which therefore should stay in the first-level cache, but a line of
// windows may need more.
constexpr int64_t kCopyBytes = 32 * 1024;
constexpr int64_t kMostCopyBytes = 512 * 1024;

bool is_covered(const Span& inner, int64_t outputs) { return inner.begin == 0 && inner.end == outputs; }

}  // namespace

ConvQ8Padding padding_of(const ConvQ8Source& s, int64_t channels, int64_t bytes, int64_t most) {
  const ConvWindow& w = s.window;
  ConvQ8Padding padding{};
  padding.columns = (int64_t{s.out_w} - 1) * w.stride_w + int64_t{w.kernel_w - 1} * w.dilation_w + 1;
  padding.channels = channels;
  const int64_t least = reached_lines(w, 1);
  if (padding.columns > most / channels || least > most / padding.line_bytes()) return {};
  padding.lines = std::clamp<int64_t>(1 + (bytes / padding.line_bytes() - least) / w.stride_h, 1, s.out_h);
  padding.bytes = reached_lines(w, padding.lines) * padding.line_bytes();
  return padding;
}

ConvQ8Padding conv_q8_padding(const ConvQ8Source& s, int64_t groups) {
  const bool all_inside = is_covered(s.inner_rows(), s.out_h) && is_covered(s.inner_columns(), s.out_w);
  if (groups == 1 || s.channels % s.kg != 0 || all_inside) return {};
  return padding_of(s, groups * s.channels, kCopyBytes, kMostCopyBytes);
}

PaddedLines padded_lines(const ConvQ8Source& s, const ConvQ8Padding& padding, Span rows) {
  const OutputCursor at(s, rows.begin);
  const int64_t most = std::min<int64_t>(padding.lines, s.out_h - at.oy);
  const int64_t count = std::min(rows.end - rows.begin, most * s.out_w - at.ox);
  return {at.n, at.oy, (at.ox + count + s.out_w - 1) / s.out_w, count};
}

void copy_padded(const ConvQ8Source& s, const ConvQ8Padding& padding, const PaddedLines& lines, uint8_t* to) {
  const int64_t channels = padding.channels;
  for_each_padded_line(s, padding, lines, [&](const PaddedLine& line) {
    const auto fill = [&](int64_t begin, int64_t end) {
      std::memset(to + begin * channels, s.x_zero & 0xff, static_cast<size_t>((end - begin) * channels));
    };
    const Span inside = line.inside;
    fill(0, inside.begin);
    fill(inside.end, padding.columns);
    const uint8_t* from = line.from;
    const int64_t step = s.stride_w == channels ? inside.end - inside.begin : 1;  // columns of a move
    for (int64_t column = inside.begin; column < inside.end; column += step, from += step * s.stride_w) {
      std::memcpy(to + column * channels, from, static_cast<size_t>(step * channels));
    }
    to += padding.line_bytes();
  });
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
