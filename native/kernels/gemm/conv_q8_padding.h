// A copy of a part of x with the border that windows reach over: grouped convolutions read it in place of x, since
// otherwise each group would copy each of its windows over the border.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_PADDING_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_PADDING_H_

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/conv_q8_rows.h"

namespace edgekit {

// What a copy holds: all that `lines` lines of y read, dense.
struct ConvQ8Padding {
  int64_t lines;     // 0: no copies, x is read where it stands
  int64_t columns;   // of x, border included
  int64_t channels;  // bytes of a column
  int64_t bytes;

  int64_t line_bytes() const { return columns * channels; }
};

// Copies of about `bytes`, `most` at most; no lines where one alone takes more.
ConvQ8Padding padding_of(const ConvQ8Source& source, int64_t channels, int64_t bytes, int64_t most);

// Of all channels, for groups of whole depth groups whose windows reach over the border.
ConvQ8Padding conv_q8_padding(const ConvQ8Source& source, int64_t groups);

// Lines of x that `lines` lines of y reach.
inline int64_t reached_lines(const ConvWindow& window, int64_t lines) {
  return (lines - 1) * window.stride_h + int64_t{window.kernel_h - 1} * window.dilation_h + 1;
}

// Lines of y that go into one copy, of one image, and how many rows of a task that are.
struct PaddedLines {
  int64_t n, first, count, rows;
};
PaddedLines padded_lines(const ConvQ8Source& source, const ConvQ8Padding& padding, Span rows);

// A line of a copy: which of its columns lie in x, and where the first of those does.
struct PaddedLine {
  Span inside;
  const uint8_t* from;
};

// Calls body(line) for each line of a copy.
template <typename Body>
void for_each_padded_line(const ConvQ8Source& s, const ConvQ8Padding& padding, const PaddedLines& lines, Body&& body) {
  const int64_t first_ix = s.window.first_column(0);
  const int64_t left = std::clamp<int64_t>(-first_ix, 0, padding.columns);
  const int64_t right = std::clamp<int64_t>(s.w - first_ix, left, padding.columns);
  const int64_t first_iy = s.window.first_row(lines.first), end = first_iy + reached_lines(s.window, lines.count);
  for (int64_t iy = first_iy; iy < end; ++iy) {
    const bool is_inside = iy >= 0 && iy < s.h && left < right;
    if (!is_inside) {
      body(PaddedLine{{0, 0}, nullptr});
    } else {
      body(PaddedLine{{left, right}, s.x + lines.n * s.stride_n + iy * s.stride_h + (first_ix + left) * s.stride_w});
    }
  }
}

// Copies what lines of y read.
void copy_padded(const ConvQ8Source& source, const ConvQ8Padding& padding, const PaddedLines& lines, uint8_t* to);

// Where depth groups of a window of group 0 lie in a copy, from its first byte on.
void padded_offsets(const ConvQ8Source& source, const ConvQ8Padding& padding, int64_t* offsets);

// Output rows of one image whose first line is the copy's: A in group 0.
void provide_padded_rows(const ConvQ8Images& images, const ConvQ8Padding& padding, Span rows, const uint8_t* copy,
                         const RowPointers& to);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_PADDING_H_
