// A copy of a part of x with the border that windows reach over: grouped convolutions read it in place of x, since
// otherwise each group would copy each of its windows over the border.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_PADDING_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_PADDING_H_

#include <cstdint>

#include "kernels/gemm/conv_q8_rows.h"

namespace edgekit {

// What a copy holds: all that `lines` lines of y read, dense, with all channels.
struct ConvQ8Padding {
  int64_t lines;  // 0: no copies, x is read where it stands
  int64_t columns, channels;
  int64_t bytes;

  int64_t line_bytes() const { return columns * channels; }
};

ConvQ8Padding conv_q8_padding(const ConvQ8Source& source, int64_t groups);

// Copies what lines [first, first + count) of y read of image n; count is at most padding.lines.
void copy_padded(const ConvQ8Source& source, const ConvQ8Padding& padding, int64_t n, int64_t first, int64_t count,
                 uint8_t* to);

// Where depth groups of a window of group 0 lie in a copy, from its first byte on.
void padded_offsets(const ConvQ8Source& source, const ConvQ8Padding& padding, int64_t* offsets);

// Output rows of one image whose first line is the copy's: A in group 0.
void provide_padded_rows(const ConvQ8Images& images, const ConvQ8Padding& padding, Span rows, const uint8_t* copy,
                         const RowPointers& to);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_PADDING_H_
