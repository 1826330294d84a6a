// A block of output pixels of a float convolution as rows of a product.
#ifndef EDGEKIT_KERNELS_GEMM_F32_CONV_BLOCK_H_
#define EDGEKIT_KERNELS_GEMM_F32_CONV_BLOCK_H_

#include <cstdint>

#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/op.h"
#include "kernels/window.h"

namespace edgekit {

namespace conv_f32 {
enum Input { kX, kW, kBias, kResidual };
inline bool has_residual(const OpArgs& args) {
  return args.input_count > kResidual && args.inputs[kResidual] != nullptr;
}
}  // namespace conv_f32

// Sizes and steps of one convolution, worked out once a run. A window is `lines` lines (its rows) of line_depth values:
// one run where the taps of a row are neighbours in x, otherwise a run for each tap.
struct ConvGeometry {
  WindowAxis vertical, horizontal;
  TapRange whole_rows, whole_columns;  // outputs whose windows lie inside the image
  int64_t depth_channels, lines, line_depth, depth;
  int64_t runs, run_depth;         // of a line
  int64_t group_columns, panels;   // output channels of a group, panels of a group
  int64_t rows, columns;           // of y; where that is all the same, one row of all pixels
  int64_t pixels;                  // of y, over batch, height and width
  int64_t tile_rows, block_rows;   // pixels of a tile, and of the tiles that go together
  RowSteps x_steps, packed_steps;  // of windows that are read where they are, and of copies
  bool reads_in_place;             // windows inside the image are
  bool reads_all_in_place;
};

// The windows of the pixels of one block: inside the image they are read where they are; tiles with a window over the
// border are copied together (im2row), with zeros for the padding.
struct ConvBlock {
  int64_t rows;
  const float* a[kMostBlockRows];
  RowSteps steps[kMostBlockTiles];  // by tile
  float* y[kMostBlockRows];         // of channel 0
  const float* residual[kMostBlockRows];
};

ConvGeometry conv_geometry(const OpArgs& args, int most_tile_rows);

// The block that starts at pixel `first`. scratch: block_rows * depth floats, unless reads_all_in_place.
void locate_block(const ConvGeometry& g, const OpArgs& args, int64_t group, int64_t first, float* scratch,
                  ConvBlock& block);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_F32_CONV_BLOCK_H_
