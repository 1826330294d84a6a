#include "kernels/gemm_f32/conv_block.h"

#include <algorithm>
#include <cstring>

namespace edgekit {
namespace {

using conv_f32::has_residual;
using conv_f32::kResidual;
using conv_f32::kX;

// A block's windows should fit the caches beside the weights.
constexpr int64_t kBlockFloats = 256 * 1024;
constexpr int64_t kFewWeights = 8 * 1024;
constexpr int64_t kFewOutputs = 4 * 1024;

// An output pixel and how to get to the next.
struct Pixel {
  int64_t n, oy, ox;
  void advance(const TensorView& y) {
    if (++ox < y.dims[2]) return;
    ox = 0;
    if (++oy < y.dims[1]) return;
    oy = 0;
    ++n;
  }
  int64_t offset(const TensorView& view) const {
    return n * view.strides[0] + oy * view.strides[1] + ox * view.strides[2];
  }
};

bool contains(const TapRange& range, int64_t value) { return value >= range.begin && value < range.end; }

// The window of one output pixel as `depth` floats.
void pack_window(const ConvGeometry& g, const TensorView& x, const float* image, const Pixel& pixel, float* packed) {
  const TapRange columns = taps_inside(g.horizontal, pixel.ox, x.dims[2]);
  const int64_t channels = g.depth_channels;
  for (int64_t ky = 0; ky < g.runs; ++ky) {
    float* run = packed + ky * g.run_depth;
    const int64_t iy = g.vertical.position(pixel.oy, ky);
    if (iy < 0 || iy >= x.dims[1] || columns.count() == 0) {
      std::fill_n(run, g.run_depth, 0.0f);
      continue;
    }
    std::fill_n(run, columns.begin * channels, 0.0f);
    const float* from = image + iy * x.strides[1];
    if (g.has_dense_runs) {
      std::memcpy(run + columns.begin * channels, from + g.horizontal.position(pixel.ox, columns.begin) * x.strides[2],
                  static_cast<size_t>(columns.count() * channels) * sizeof(float));
    } else {
      for (int64_t kx = columns.begin; kx < columns.end; ++kx) {
        std::memcpy(run + kx * channels, from + g.horizontal.position(pixel.ox, kx) * x.strides[2],
                    static_cast<size_t>(channels) * sizeof(float));
      }
    }
    std::fill_n(run + columns.end * channels, g.run_depth - columns.end * channels, 0.0f);
  }
}

// How many tiles go through a panel of weights before the next panel comes. Many, so that the panel stays in the
// first-level cache; but where all weights fit there anyway, few, so that the outputs of the block do too.
int64_t block_tiles(const ConvGeometry& g) {
  int64_t rows = kBlockFloats / g.depth;
  if (g.depth * g.group_columns <= kFewWeights) rows = std::min(rows, kFewOutputs / g.group_columns);
  return std::max<int64_t>(1, std::min<int64_t>(kMostBlockTiles, rows / g.tile_rows));
}

}  // namespace

ConvGeometry conv_geometry(const OpArgs& args, int tile_rows) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  ConvGeometry g;
  g.vertical = vertical_axis(conv_window(attrs));
  g.horizontal = horizontal_axis(conv_window(attrs));
  g.whole_rows = whole_windows(g.vertical, y.dims[1], x.dims[1]);
  g.whole_columns = whole_windows(g.horizontal, y.dims[2], x.dims[2]);
  g.depth_channels = x.dims[3] / attrs.groups;
  g.runs = attrs.kernel_h;
  g.run_depth = attrs.kernel_w * g.depth_channels;
  g.depth = g.runs * g.run_depth;
  g.group_columns = y.dims[3] / attrs.groups;
  g.panels = (g.group_columns + attrs.nr - 1) / attrs.nr;
  g.pixels = int64_t{y.dims[0]} * y.dims[1] * y.dims[2];
  g.tile_rows = tile_rows;
  g.block_rows = std::min(block_tiles(g) * tile_rows, g.pixels);
  g.row_step = attrs.dilation_h * x.strides[1];
  g.has_dense_runs = attrs.kernel_w == 1 || (attrs.dilation_w == 1 && x.strides[2] == g.depth_channels);
  g.reads_all_in_place = g.has_dense_runs && g.whole_rows.count() == y.dims[1] && g.whole_columns.count() == y.dims[2];
  return g;
}

void locate_block(const ConvGeometry& g, const OpArgs& args, int64_t group, int64_t first, float* scratch,
                  ConvBlock& block) {
  const TensorView &x = args.in(kX), &y = args.out(0);
  Pixel pixel = {first / y.dims[2] / y.dims[1], first / y.dims[2] % y.dims[1], first % y.dims[2]};
  block.rows = std::min(g.block_rows, g.pixels - first);
  for (int64_t begin = 0; begin < block.rows; begin += g.tile_rows) {
    const int64_t end = std::min(begin + g.tile_rows, block.rows);
    const Pixel tile_start = pixel;
    bool in_place = g.has_dense_runs;
    for (int64_t r = begin; r < end; ++r, pixel.advance(y)) {
      block.y[r] = y.as<float>() + pixel.offset(y);
      if (has_residual(args))
        block.residual[r] = args.in(kResidual).as<const float>() + pixel.offset(args.in(kResidual));
      in_place = in_place && contains(g.whole_rows, pixel.oy) && contains(g.whole_columns, pixel.ox);
      block.a[r] = x.as<const float>() + pixel.n * x.strides[0] + group * g.depth_channels;  // the image, for now
    }
    block.run_step[begin / g.tile_rows] = in_place ? g.row_step : g.run_depth;
    Pixel at = tile_start;
    for (int64_t r = begin; r < end; ++r, at.advance(y)) {
      if (in_place) {
        block.a[r] += g.vertical.position(at.oy, 0) * x.strides[1] + g.horizontal.position(at.ox, 0) * x.strides[2];
      } else {
        pack_window(g, x, block.a[r], at, scratch + r * g.depth);
        block.a[r] = scratch + r * g.depth;
      }
    }
  }
}

}  // namespace edgekit
