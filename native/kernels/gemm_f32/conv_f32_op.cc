// conv_f32: each block of output pixels is a product of its input windows, one window a row, and the packed weights.
// The windows are read in place for 1x1 kernels and are otherwise copied together (im2row), with zeros for the padding.
#include <cstring>

#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"
#include "kernels/window.h"

namespace edgekit {
namespace {

enum Input { kX, kW, kBias, kResidual };

bool has_residual(const OpArgs& args) { return args.input_count > kResidual && args.inputs[kResidual] != nullptr; }

Status check_weights(const OpArgs& args, const ConvF32Attrs& attrs) {
  const TensorView &x = args.in(kX), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_in_range("groups", attrs.groups, 1, x.dims[3]));
  if (x.dims[3] % attrs.groups != 0 || y.dims[3] % attrs.groups != 0) {
    return invalid("conv_f32: %d groups do not divide %d and %d channels", attrs.groups, x.dims[3], y.dims[3]);
  }
  if (attrs.nr != 8 && attrs.nr != 16 && attrs.nr != 32) return invalid("conv_f32: nr is %d", attrs.nr);
  const int64_t taps = int64_t{attrs.kernel_h} * attrs.kernel_w;  // at most 2^32, see check_conv_window
  const int64_t depth_channels = x.dims[3] / attrs.groups;
  if (taps > INT32_MAX / depth_channels) return invalid("conv_f32: the window is too large");
  const int64_t dims[4] = {attrs.groups, (y.dims[3] / attrs.groups + attrs.nr - 1) / attrs.nr, taps * depth_channels,
                           attrs.nr};
  EK_RETURN_IF_ERROR(expect_dense("w", args.in(kW), Dtype::kF32, dims, 4));
  return expect_vector("bias", args.in(kBias), Dtype::kF32, y.dims[3]);
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_dtype("x", x, Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_dtype("y", y, Dtype::kF32));
  EK_RETURN_IF_ERROR(check_conv_window(conv_window(attrs), x, y));
  EK_RETURN_IF_ERROR(check_weights(args, attrs));
  EK_RETURN_IF_ERROR(expect_fused_activation("act", attrs.act));
  EK_RETURN_IF_ERROR(expect_in_range("add_before_act", attrs.add_before_act, 0, 1));
  if (has_residual(args)) {
    EK_RETURN_IF_ERROR(expect_dtype("residual", args.in(kResidual), Dtype::kF32));
    EK_RETURN_IF_ERROR(expect_image("residual", args.in(kResidual)));
    EK_RETURN_IF_ERROR(expect_same_dims("residual", args.in(kResidual), "y", y));
  }
  return expect_writable("y", y);
}

// Sizes and steps of one convolution, worked out once a run.
struct Geometry {
  WindowAxis vertical, horizontal;
  int64_t depth_channels, depth;  // of one group
  int64_t group_columns, panels;  // output channels of a group, panels of a group
  int64_t width, pixels;          // of y; pixels over batch, height and width
  int64_t block_pixels;           // rows of the product that are packed together
  bool in_place;                  // 1x1 without padding: windows are pixels of x
};

// A block's windows should fit the second-level cache beside the weights.
constexpr int64_t kBlockFloats = 24 * 1024;

Geometry geometry_of(const OpArgs& args, int tile_rows) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const TensorView &x = args.in(kX), &y = args.out(0);
  Geometry g;
  g.vertical = vertical_axis(conv_window(attrs));
  g.horizontal = horizontal_axis(conv_window(attrs));
  g.depth_channels = x.dims[3] / attrs.groups;
  g.depth = int64_t{attrs.kernel_h} * attrs.kernel_w * g.depth_channels;
  g.group_columns = y.dims[3] / attrs.groups;
  g.panels = (g.group_columns + attrs.nr - 1) / attrs.nr;
  g.width = y.dims[2];
  g.pixels = int64_t{y.dims[0]} * y.dims[1] * g.width;
  const int64_t tiles = std::max<int64_t>(1, std::min<int64_t>(16, kBlockFloats / g.depth / tile_rows));
  g.block_pixels = std::min(tiles * tile_rows, g.pixels);
  const auto inside = [](const WindowAxis& axis, int64_t outputs, int64_t extent) {
    const TapRange whole = whole_windows(axis, outputs, extent);
    return axis.kernel == 1 && whole.begin == 0 && whole.end == outputs;
  };
  g.in_place = inside(g.vertical, y.dims[1], x.dims[1]) && inside(g.horizontal, y.dims[2], x.dims[2]);
  return g;
}

// The window of one output pixel as `depth` floats.
void pack_window(const Geometry& g, const TensorView& x, const float* image, int64_t oy, int64_t ox, float* packed) {
  const TapRange columns = taps_inside(g.horizontal, ox, x.dims[2]);
  const size_t tap_floats = static_cast<size_t>(g.depth_channels);
  const bool dense = x.strides[2] == g.depth_channels && g.horizontal.dilation == 1;
  for (int64_t ky = 0; ky < g.vertical.kernel; ++ky) {
    float* row = packed + ky * g.horizontal.kernel * g.depth_channels;
    const int64_t iy = g.vertical.position(oy, ky);
    if (iy < 0 || iy >= x.dims[1] || columns.count() == 0) {
      std::fill_n(row, g.horizontal.kernel * g.depth_channels, 0.0f);
      continue;
    }
    std::fill_n(row, columns.begin * g.depth_channels, 0.0f);
    const float* from = image + iy * x.strides[1];
    if (dense) {
      std::memcpy(row + columns.begin * g.depth_channels,
                  from + g.horizontal.position(ox, columns.begin) * x.strides[2],
                  static_cast<size_t>(columns.count()) * tap_floats * sizeof(float));
    } else {
      for (int64_t kx = columns.begin; kx < columns.end; ++kx) {
        std::memcpy(row + kx * g.depth_channels, from + g.horizontal.position(ox, kx) * x.strides[2],
                    tap_floats * sizeof(float));
      }
    }
    std::fill_n(row + columns.end * g.depth_channels, (g.horizontal.kernel - columns.end) * g.depth_channels, 0.0f);
  }
}

// Where the pixels of a block start in memory.
struct BlockRows {
  const float* a[256];
  int64_t y_at[256], residual_at[256];  // offsets of channel 0
};
constexpr int64_t kMostBlockPixels = 16 * kMostTileRows;
static_assert(kMostBlockPixels <= 256);

void locate_block(const Geometry& g, const OpArgs& args, int64_t group, int64_t first, int64_t count, float* scratch,
                  BlockRows& rows) {
  const TensorView &x = args.in(kX), &y = args.out(0);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t pixel = first + i, ox = pixel % g.width;
    const int64_t oy = pixel / g.width % y.dims[1], n = pixel / g.width / y.dims[1];
    rows.y_at[i] = n * y.strides[0] + oy * y.strides[1] + ox * y.strides[2];
    if (has_residual(args)) {
      const TensorView& r = args.in(kResidual);
      rows.residual_at[i] = n * r.strides[0] + oy * r.strides[1] + ox * r.strides[2];
    }
    const float* image = x.as<const float>() + n * x.strides[0] + group * g.depth_channels;
    if (g.in_place) {
      rows.a[i] = image + g.vertical.position(oy, 0) * x.strides[1] + g.horizontal.position(ox, 0) * x.strides[2];
    } else {
      rows.a[i] = scratch + i * g.depth;
      pack_window(g, x, image, oy, ox, scratch + i * g.depth);
    }
  }
}

// One panel of output channels for all pixels of a block.
void run_panel(const GemmF32Kernels& kernels, const Geometry& g, const OpArgs& args, const BlockRows& rows,
               int64_t count, int64_t group, int64_t panel) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const GemmEpilogue epilogue = {{static_cast<Activation>(attrs.act), attrs.act_alpha, attrs.act_beta},
                                 attrs.add_before_act != 0};
  const int64_t first_column = panel * attrs.nr;
  const int64_t columns = std::min<int64_t>(attrs.nr, g.group_columns - first_column);
  const int64_t channel = group * g.group_columns + first_column;
  float init[kMostPanelColumns] = {}, out[kMostTileRows * kMostPanelColumns];
  std::copy_n(args.in(kBias).as<const float>() + channel, columns, init);
  const float* weights = args.in(kW).as<const float>() + (group * g.panels + panel) * g.depth * attrs.nr;
  for (int64_t r = 0; r < count; r += kernels.mr) {
    const int tile_rows = static_cast<int>(std::min<int64_t>(kernels.mr, count - r));
    kernels.tile({rows.a + r, weights, attrs.nr, init, g.depth, tile_rows, attrs.nr}, out);
    for (int i = 0; i < tile_rows; ++i) {
      const float* residual =
          has_residual(args) ? args.in(kResidual).as<const float>() + rows.residual_at[r + i] + channel : nullptr;
      kernels.finish(epilogue, out + i * attrs.nr, residual, args.out(0).as<float>() + rows.y_at[r + i] + channel,
                     static_cast<int>(columns));
    }
  }
}

size_t worker_bytes(const Geometry& g) {
  return g.in_place ? 0 : (static_cast<size_t>(g.block_pixels * g.depth) * sizeof(float) + 63) / 64 * 64;
}

size_t scratch_bytes(const OpArgs& args, int threads, Isa isa) {
  const GemmF32Kernels& kernels = gemm_f32_kernels(isa, args.attrs<ConvF32Attrs>().nr);
  return worker_bytes(geometry_of(args, kernels.mr)) * static_cast<size_t>(threads);
}

// Units of work are (group, block of pixels, slice of panels); panels are only split when there are few blocks.
Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const GemmF32Kernels& kernels = gemm_f32_kernels(context.isa, attrs.nr);
  const Geometry g = geometry_of(args, kernels.mr);
  const int64_t blocks = (g.pixels + g.block_pixels - 1) / g.block_pixels;
  int64_t slices = 1;
  while (attrs.groups * blocks * slices < 4 * context.threads && slices * 2 <= g.panels && context.threads > 1)
    slices *= 2;
  const double unit_ns = static_cast<double>(g.block_pixels * g.depth) * static_cast<double>(g.group_columns) /
                         static_cast<double>(slices) / 30.0;
  parallel_for(context, attrs.groups * blocks * slices, unit_ns, [&](int64_t begin, int64_t end, int worker) {
    float* scratch = reinterpret_cast<float*>(context.scratch + worker_bytes(g) * static_cast<size_t>(worker));
    BlockRows rows;
    int64_t located = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t slice = unit % slices, group_block = unit / slices;
      const int64_t group = group_block / blocks, first = group_block % blocks * g.block_pixels;
      const int64_t count = std::min(g.block_pixels, g.pixels - first);
      if (group_block != located) locate_block(g, args, group, first, count, scratch, rows);
      located = group_block;
      for (int64_t panel = g.panels * slice / slices; panel < g.panels * (slice + 1) / slices; ++panel) {
        run_panel(kernels, g, args, rows, count, group, panel);
      }
    }
  });
  return Status::ok();
}

}  // namespace

const OpDef kConvF32Op = {Opcode::kConvF32, "conv_f32", check, scratch_bytes, run};

}  // namespace edgekit
