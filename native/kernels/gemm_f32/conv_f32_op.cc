// conv_f32: each block of output pixels is a product of its input windows, one window a row, and the packed weights.
#include "kernels/gemm_f32/conv_block.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"

namespace edgekit {
namespace {

using conv_f32::kBias;
using conv_f32::kResidual;
using conv_f32::kW;
using conv_f32::kX;

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
  if (conv_f32::has_residual(args)) {
    EK_RETURN_IF_ERROR(expect_dtype("residual", args.in(kResidual), Dtype::kF32));
    EK_RETURN_IF_ERROR(expect_image("residual", args.in(kResidual)));
    EK_RETURN_IF_ERROR(expect_same_dims("residual", args.in(kResidual), "y", y));
  }
  return expect_writable("y", y);
}

// Part of the depth: whole lines, or a piece of one that is a single run. All tiles of a block go through one chunk
// before the next, so that the chunk's weights stay in the first-level cache; the sums are kept in between, which
// changes no bit of them.
struct Chunk {
  int64_t first_line, lines, offset, depth;
};
constexpr int64_t kMostChunkDepth = 512;

// Calls body(chunk, is_first, is_last).
template <typename Body>
void for_each_chunk(const ConvGeometry& g, Body&& body) {
  if (g.depth <= kMostChunkDepth + kMostChunkDepth / 4) {
    body(Chunk{0, g.lines, 0, g.run_depth}, true, true);
    return;
  }
  const int64_t lines_each = std::max<int64_t>(1, kMostChunkDepth / g.line_depth);
  const int64_t pieces = g.runs == 1 ? (g.run_depth + kMostChunkDepth - 1) / kMostChunkDepth : 1;
  for (int64_t line = 0; line < g.lines; line += lines_each) {
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t begin = g.run_depth * piece / pieces, end = g.run_depth * (piece + 1) / pieces;
      const int64_t lines = std::min(lines_each, g.lines - line);
      body(Chunk{line, lines, begin, end - begin}, line == 0 && piece == 0,
           line + lines == g.lines && piece + 1 == pieces);
    }
  }
}

GemmEpilogue epilogue_of(const ConvF32Attrs& attrs) {
  return gemm_epilogue({static_cast<Activation>(attrs.act), attrs.act_alpha, attrs.act_beta},
                       attrs.add_before_act != 0);
}

// One panel of output channels for all pixels of a block.
void run_panel(const GemmF32Kernels& kernels, const ConvGeometry& g, const OpArgs& args, const ConvBlock& rows,
               int64_t group, int64_t panel) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const GemmEpilogue epilogue = epilogue_of(attrs);
  const int64_t first_column = panel * attrs.nr;
  GemmBlock block = {};
  block.nr = attrs.nr;
  block.columns = static_cast<int>(std::min<int64_t>(attrs.nr, g.group_columns - first_column));
  block.column = group * g.group_columns + first_column;
  alignas(64) float bias[kMostPanelColumns] = {}, sums[kMostBlockRows * kMostPanelColumns];
  std::copy_n(args.in(kBias).as<const float>() + block.column, block.columns, bias);
  block.a = rows.a;
  block.steps = rows.steps;
  block.rows = rows.rows;
  block.tile_rows = static_cast<int>(g.tile_rows);
  block.b_step = attrs.nr;
  block.epilogue = &epilogue;
  block.y = rows.y;
  block.residual = conv_f32::has_residual(args) ? rows.residual : nullptr;
  const float* weights = args.in(kW).as<const float>() + (group * g.panels + panel) * g.depth * attrs.nr;
  for_each_chunk(g, [&](const Chunk& chunk, bool is_first, bool is_last) {
    block.first_line = chunk.first_line;
    block.offset = chunk.offset;
    block.lines = chunk.lines;
    block.runs = g.runs;
    block.depth = chunk.depth;
    block.b = weights + (chunk.first_line * g.line_depth + chunk.offset) * attrs.nr;
    block.init = is_first ? bias : sums;
    block.init_step = is_first ? 0 : attrs.nr;
    block.partial = is_last ? nullptr : sums;
    kernels.block(block);
  });
}

size_t worker_bytes(const ConvGeometry& g) {
  return g.reads_all_in_place ? 0 : (static_cast<size_t>(g.block_rows * g.depth) * sizeof(float) + 63) / 64 * 64;
}

size_t scratch_bytes(const OpArgs& args, int threads, Isa isa) {
  const GemmF32Kernels& kernels = gemm_f32_kernels(isa, args.attrs<ConvF32Attrs>().nr);
  return worker_bytes(conv_geometry(args, kernels.mr)) * static_cast<size_t>(threads);
}

// Units of work are (group, block of pixels, slice of panels); panels are only split when there are few blocks.
Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<ConvF32Attrs>();
  const GemmF32Kernels& kernels = gemm_f32_kernels(context.isa, attrs.nr);
  const ConvGeometry g = conv_geometry(args, kernels.mr);
  const int64_t blocks = (g.pixels + g.block_rows - 1) / g.block_rows;
  int64_t slices = 1;
  while (attrs.groups * blocks * slices < 4 * context.threads && slices * 2 <= g.panels && context.threads > 1) {
    slices *= 2;
  }
  const double unit_ns = static_cast<double>(g.block_rows * g.depth) * static_cast<double>(g.group_columns) /
                         static_cast<double>(slices) / 30.0;
  parallel_for(context, attrs.groups * blocks * slices, unit_ns, [&](int64_t begin, int64_t end, int worker) {
    float* scratch = reinterpret_cast<float*>(context.scratch + worker_bytes(g) * static_cast<size_t>(worker));
    ConvBlock block;
    int64_t located = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t slice = unit % slices, group_block = unit / slices;
      const int64_t group = group_block / blocks;
      if (group_block != located) locate_block(g, args, group, group_block % blocks * g.block_rows, scratch, block);
      located = group_block;
      for (int64_t panel = g.panels * slice / slices; panel < g.panels * (slice + 1) / slices; ++panel) {
        run_panel(kernels, g, args, block, group, panel);
      }
    }
  });
  return Status::ok();
}

std::string kernel(const OpArgs& args, Isa isa) {
  const bool is_packed_for_it = gemm_f32_kernels(isa).nr == args.attrs<ConvF32Attrs>().nr;
  return std::string("gemm_f32_") + (is_packed_for_it ? gemm_f32_kernel_space(isa) : "scalar");
}

}  // namespace

const OpDef kConvF32Op = {Opcode::kConvF32, "conv_f32", check, scratch_bytes, run, nullptr, nullptr, kernel};

}  // namespace edgekit
