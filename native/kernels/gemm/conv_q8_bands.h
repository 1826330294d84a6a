// Bands of output pixels whose windows have the same taps inside the image. Where the zero point of x is 0, taps
// outside add nothing: kernels that can leave depth groups out skip them, and no window has to be copied.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_BANDS_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_BANDS_H_

#include <cstddef>

#include "kernels/gemm/conv_q8_rows.h"
#include "kernels/op.h"

namespace edgekit {

struct ConvQ8Band {
  Span lines, columns;  // of y
  // For kernels that skip depth groups: where those inside lie, from the window's start (see GemmQ8Rows).
  const int64_t* offsets;    // [groups]
  const int64_t* b_offsets;  // [groups]
  int64_t groups;
  // For kernels that skip parts.
  const uint8_t* taken;  // [parts]
  const int32_t* bias;   // [panels of all groups][nr]; null: the op's
};

inline constexpr int kMostAxisBands = 5;
inline constexpr int kMostBands = kMostAxisBands * kMostAxisBands;

struct ConvQ8Bands {
  int count;  // 0: not that kind of convolution
  // For kernels that skip parts: where all depth groups lie, from the window's start. Of weights that are no list also
  // what makes a part of each tap (see GemmQ8Rows).
  const int64_t* offsets;
  const int32_t* segments;
  int64_t parts;
  ConvQ8Band band[kMostBands];
};

// Whether there may be bands: quick, but it does not see a list of rows that kernels can skip nothing of.
bool may_have_conv_q8_bands(const OpArgs& args, Isa isa);

// Memory that the lists of all bands take; 0 where there are none.
size_t conv_q8_band_bytes(const OpArgs& args, Isa isa);

// lists: conv_q8_band_bytes of them.
ConvQ8Bands make_conv_q8_bands(const OpArgs& args, Isa isa, int64_t* lists);

// The pixels of a block, band by band: those of band i are rows spans[i] of `to`.
void provide_banded_rows(const ConvQ8Images& images, const ConvQ8Bands& bands, Span rows, int64_t group,
                         const RowPointers& to, Span (&spans)[kMostBands]);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_BANDS_H_
