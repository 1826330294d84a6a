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

// Taps of fewer channels are copied together rather than read one by one.
constexpr int64_t kLeastRun = 8;

// An output pixel and how to get to the next.
struct Pixel {
  int64_t n, oy, ox;
  void advance(const ConvGeometry& g) {
    if (++ox < g.columns) return;
    ox = 0;
    if (++oy < g.rows) return;
    oy = 0;
    ++n;
  }
  int64_t offset(const TensorView& view) const {
    return n * view.strides[0] + oy * view.strides[1] + ox * view.strides[2];
  }
};

bool contains(const TapRange& range, int64_t value) { return value >= range.begin && value < range.end; }

// Where the window of a pixel starts in x, of channel 0; outside the image for windows over the border.
int64_t window_offset(const ConvGeometry& g, const TensorView& x, const Pixel& at) {
  return at.n * x.strides[0] + g.vertical.position(at.oy, 0) * x.strides[1] +
         g.horizontal.position(at.ox, 0) * x.strides[2];
}

// The window of one output pixel as `depth` floats.
void pack_window(const ConvGeometry& g, const TensorView& x, const float* image, const Pixel& pixel, float* packed) {
  const TapRange columns = taps_inside(g.horizontal, pixel.ox, x.dims[2]);
  const int64_t channels = g.depth_channels;
  for (int64_t ky = 0; ky < g.lines; ++ky) {
    float* line = packed + ky * g.line_depth;
    const int64_t iy = g.vertical.position(pixel.oy, ky);
    if (iy < 0 || iy >= x.dims[1] || columns.count() == 0) {
      std::fill_n(line, g.line_depth, 0.0f);
      continue;
    }
    std::fill_n(line, columns.begin * channels, 0.0f);
    const float* from = image + iy * x.strides[1] + g.horizontal.position(pixel.ox, 0) * x.strides[2];
    const int64_t step = g.x_steps.run == channels ? columns.count() : 1;  // taps of a move
    for (int64_t kx = columns.begin; kx < columns.end; kx += step) {
      std::memcpy(line + kx * channels, from + kx * g.x_steps.run,
                  static_cast<size_t>(step * channels) * sizeof(float));
    }
    std::fill_n(line + columns.end * channels, g.line_depth - columns.end * channels, 0.0f);
  }
}

// Rows of a tile: as many as the registers hold, or fewer when they leave a shorter last tile. Shorter tiles load more
// for each multiplication.
int64_t choose_tile_rows(int64_t pixels, int64_t most) {
  int64_t best = std::min(pixels, most);
  double least = 1e30;
  for (int64_t rows = most; rows > most / 2; --rows) {
    const int64_t tiles = (pixels + rows - 1) / rows;
    const double cost = static_cast<double>(tiles * rows) * (1.0 + 0.03 * static_cast<double>(most - rows));
    if (cost < least) best = rows, least = cost;
  }
  return best;
}

// How many rows go through a panel of weights before the next panel comes: many, so that the panel stays in the
// first-level cache. Blocks are equally long.
int64_t choose_block_rows(const ConvGeometry& g) {
  const int64_t rows = kBlockFloats / g.depth;
  const int64_t most = std::max<int64_t>(1, std::min<int64_t>(kMostBlockTiles, rows / g.tile_rows));
  const int64_t tiles = (g.pixels + g.tile_rows - 1) / g.tile_rows, blocks = (tiles + most - 1) / most;
  return std::min((tiles + blocks - 1) / blocks * g.tile_rows, g.pixels);
}

// Views of [1, 1, pixels, C] instead of [N, H, W, C], for pointwise convolutions of dense images.
bool is_one_row(const TensorView& view) {
  return view.strides[1] == view.dims[2] * view.strides[2] && view.strides[0] == view.dims[1] * view.strides[1];
}

bool walks_one_row(const ConvWindow& window, const OpArgs& args) {
  return window.kernel_h == 1 && window.kernel_w == 1 && window.stride_h == 1 && window.stride_w == 1 &&
         window.pad_top == 0 && window.pad_left == 0 && args.in(kX).dims[1] == args.out(0).dims[1] &&
         args.in(kX).dims[2] == args.out(0).dims[2] && is_one_row(args.in(kX)) && is_one_row(args.out(0)) &&
         (!has_residual(args) || is_one_row(args.in(kResidual)));
}

// A tile of windows that lie in the image, side by side.
void locate_side_by_side(const ConvGeometry& g, const OpArgs& args, const Pixel& at, int64_t begin, int64_t end,
                         int64_t channel, ConvBlock& block) {
  const TensorView &x = args.in(kX), &y = args.out(0);
  const float* a = x.as<const float>() + window_offset(g, x, at) + channel;
  float* to = y.as<float>() + at.offset(y);
  const int64_t a_step = g.horizontal.stride * x.strides[2];
  for (int64_t r = begin; r < end; ++r, a += a_step, to += y.strides[2]) block.a[r] = a, block.y[r] = to;
  if (!has_residual(args)) return;
  const TensorView& residual = args.in(kResidual);
  const float* from = residual.as<const float>() + at.offset(residual);
  for (int64_t r = begin; r < end; ++r, from += residual.strides[2]) block.residual[r] = from;
}

}  // namespace

ConvGeometry conv_geometry(const OpArgs& args, int most_tile_rows) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  ConvGeometry g;
  const bool one_row = walks_one_row(conv_window(attrs), args);
  g.vertical = vertical_axis(conv_window(attrs));
  g.horizontal = horizontal_axis(conv_window(attrs));
  g.pixels = int64_t{y.dims[0]} * y.dims[1] * y.dims[2];
  g.rows = one_row ? 1 : y.dims[1];
  g.columns = one_row ? g.pixels : y.dims[2];
  g.whole_rows = one_row ? TapRange{0, 1} : whole_windows(g.vertical, y.dims[1], x.dims[1]);
  g.whole_columns = one_row ? TapRange{0, g.pixels} : whole_windows(g.horizontal, y.dims[2], x.dims[2]);
  g.depth_channels = x.dims[3] / attrs.groups;
  g.lines = attrs.kernel_h;
  g.line_depth = attrs.kernel_w * g.depth_channels;
  g.depth = g.lines * g.line_depth;
  g.x_steps = {attrs.dilation_h * x.strides[1], attrs.dilation_w * x.strides[2]};
  g.packed_steps = {g.line_depth, g.depth_channels};
  const bool has_dense_lines = attrs.kernel_w == 1 || g.x_steps.run == g.depth_channels;
  g.reads_in_place = has_dense_lines || g.depth_channels >= kLeastRun;
  g.runs = has_dense_lines || !g.reads_in_place ? 1 : attrs.kernel_w;
  g.run_depth = g.line_depth / g.runs;
  g.group_columns = y.dims[3] / attrs.groups;
  g.panels = (g.group_columns + attrs.nr - 1) / attrs.nr;
  g.tile_rows = choose_tile_rows(g.pixels, most_tile_rows);
  g.block_rows = choose_block_rows(g);
  g.reads_all_in_place = g.reads_in_place && g.whole_rows.count() == g.rows && g.whole_columns.count() == g.columns;
  return g;
}

void locate_block(const ConvGeometry& g, const OpArgs& args, int64_t group, int64_t first, float* scratch,
                  ConvBlock& block) {
  const TensorView &x = args.in(kX), &y = args.out(0);
  const int64_t channel = group * g.depth_channels;
  Pixel pixel = {first / g.columns / g.rows, first / g.columns % g.rows, first % g.columns};
  block.rows = std::min(g.block_rows, g.pixels - first);
  for (int64_t begin = 0; begin < block.rows; begin += g.tile_rows) {
    const int64_t end = std::min(begin + g.tile_rows, block.rows);
    const bool row_inside = g.reads_in_place && contains(g.whole_rows, pixel.oy);
    if (row_inside && pixel.ox >= g.whole_columns.begin && pixel.ox + end - begin <= g.whole_columns.end) {
      locate_side_by_side(g, args, pixel, begin, end, channel, block);
      block.steps[begin / g.tile_rows] = g.x_steps;
      pixel.ox += end - begin - 1;
      pixel.advance(g);
      continue;
    }
    bool in_place = g.reads_in_place;
    Pixel at = pixel;
    for (int64_t r = begin; r < end; ++r, at.advance(g)) {
      in_place = in_place && contains(g.whole_rows, at.oy) && contains(g.whole_columns, at.ox);
    }
    block.steps[begin / g.tile_rows] = in_place ? g.x_steps : g.packed_steps;
    for (int64_t r = begin; r < end; ++r, pixel.advance(g)) {
      block.y[r] = y.as<float>() + pixel.offset(y);
      if (has_residual(args))
        block.residual[r] = args.in(kResidual).as<const float>() + pixel.offset(args.in(kResidual));
      if (in_place) {
        block.a[r] = x.as<const float>() + window_offset(g, x, pixel) + channel;
      } else {
        pack_window(g, x, x.as<const float>() + pixel.n * x.strides[0] + channel, pixel, scratch + r * g.depth);
        block.a[r] = scratch + r * g.depth;
      }
    }
  }
}

}  // namespace edgekit
