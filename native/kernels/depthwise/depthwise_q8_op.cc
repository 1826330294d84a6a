// depthwise_q8: checks its operands, packs the weights once a session, then computes rows of output block by block.
#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/depthwise/depthwise_q8.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"

namespace edgekit {
namespace {

RequantizeOperands requantize_operands(const OpArgs& args) {
  return {args.out(0), args.in(3), args.input_count > 4 ? args.inputs[4] : nullptr,
          args.input_count > 5 ? args.inputs[5] : nullptr};
}

Status check_depthwise_q8(const OpArgs& args) {
  const auto& a = args.attrs<DepthwiseQ8Attrs>();
  const TensorView& x = args.in(0);
  const TensorView& y = args.out(0);
  EK_RETURN_IF_ERROR(check_conv_window(conv_window(a), x, y));
  EK_RETURN_IF_ERROR(expect_in_range("channels of y", y.dims[3], x.dims[3], x.dims[3]));
  const int64_t dims[2] = {int64_t{a.kernel_h} * a.kernel_w, x.dims[3]};
  EK_RETURN_IF_ERROR(expect_dense("w", args.in(1), Dtype::kS8, dims, 2));
  EK_RETURN_IF_ERROR(expect_constant("w", args.in(1)));
  EK_RETURN_IF_ERROR(expect_vector("bias", args.in(2), Dtype::kI32, x.dims[3]));
  EK_RETURN_IF_ERROR(expect_constant("bias", args.in(2)));
  EK_RETURN_IF_ERROR(expect_same_dtype("x", x, "y", y));
  EK_RETURN_IF_ERROR(expect_writable("y", y));
  return check_requantize(requantize_attrs(a), requantize_operands(args));
}

// Channels and columns are cut so that what one call of a kernel reads of x stays in level 1: about so many KiB, the
// first unless `edgekit tune` has found another one to be faster. OpArgs::way counts kernels, then these.
constexpr int64_t kTileKib[] = {16, 8, 32};
constexpr int kTiles = 3;
constexpr int32_t kGroupChannels = 128;

// State: the requantization, a pixel of x_zero, then the packed weights of all blocks. Scratch: for each worker the
// pointers to a strip's input rows, and copies of those rows if the tensor is too narrow.
struct DepthwisePlan {
  static constexpr size_t kRequantizeBytes = (sizeof(RequantizeQ8) + 63) / 64 * 64;
  const DepthwiseQ8Kernel* kernel;
  ConvWindow window;
  int32_t channels, blocks;
  int32_t group_blocks;  // of one call
  int32_t tile_columns;  // of one call
  int32_t strip_rows;    // input rows of one strip
  bool narrow;           // pixels hold fewer bytes than kernels read
  size_t block_bytes, zero_bytes, pointer_bytes, copy_bytes;

  size_t state_bytes() const { return kRequantizeBytes + zero_bytes + block_bytes * static_cast<size_t>(blocks); }
  size_t worker_bytes() const { return pointer_bytes + copy_bytes; }
};

// The group of blocks and the columns of one call.
void plan_tiles(DepthwisePlan& plan, int32_t out_w, int64_t tile_bytes) {
  const int32_t block = plan.kernel->channels;
  // Whole cache lines of channels, or all of them when that is little more.
  plan.group_blocks = plan.channels <= kGroupChannels * 5 / 4 ? plan.blocks : std::max(kGroupChannels / block, 1);
  const int64_t column_bytes = int64_t{plan.strip_rows} * std::min(plan.group_blocks * block, plan.channels);
  const int64_t most = std::max<int64_t>(tile_bytes / column_bytes / plan.window.stride_w, 8);
  const int64_t tiles = (out_w + most - 1) / most;
  // Kernels compute pairs of columns.
  plan.tile_columns = static_cast<int32_t>((out_w + tiles - 1) / tiles + 1) / 2 * 2;
}

DepthwisePlan plan_depthwise_q8(const OpArgs& args, Isa isa) {
  DepthwisePlan plan{};
  plan.window = conv_window(args.attrs<DepthwiseQ8Attrs>());
  const auto kernels = depthwise_q8_count(isa, args.in(0).dtype, plan.window);
  plan.kernel = &select_depthwise_q8(isa, args.in(0).dtype, plan.window, args.way % kernels);
  plan.channels = args.in(0).dims[3];
  plan.blocks = (plan.channels + plan.kernel->channels - 1) / plan.kernel->channels;
  plan.block_bytes = plan.kernel->packed_bytes(plan.window.kernel_h, plan.window.kernel_w);
  plan.zero_bytes = static_cast<size_t>(std::max(plan.channels, plan.kernel->channels) + 63) / 64 * 64;
  plan.strip_rows = plan.window.kernel_h + (plan.kernel->out_rows - 1) * plan.window.stride_h;
  plan.narrow = plan.channels < plan.kernel->narrowest;
  const size_t rows = static_cast<size_t>(plan.strip_rows);
  plan.pointer_bytes = (rows * sizeof(void*) + 63) / 64 * 64;
  const size_t row_bytes = static_cast<size_t>(args.in(0).dims[2]) * static_cast<size_t>(plan.kernel->narrowest);
  plan.copy_bytes = plan.narrow ? (rows * row_bytes + 63) / 64 * 64 : 0;
  plan_tiles(plan, args.out(0).dims[2], kTileKib[args.way / kernels] * 1024);
  return plan;
}

size_t scratch_depthwise_q8(const OpArgs& args, int threads, Isa isa) {
  return plan_depthwise_q8(args, isa).worker_bytes() * static_cast<size_t>(threads);
}

size_t state_depthwise_q8(const OpArgs& args, Isa isa) { return plan_depthwise_q8(args, isa).state_bytes(); }

// The state as run() reads it.
struct DepthwiseState {
  const RequantizeQ8& requantize;
  const uint8_t* zero;
  const std::byte* packed;

  DepthwiseState(const DepthwisePlan& plan, const std::byte* state)
      : requantize(*reinterpret_cast<const RequantizeQ8*>(state)),
        zero(reinterpret_cast<const uint8_t*>(state + DepthwisePlan::kRequantizeBytes)),
        packed(state + DepthwisePlan::kRequantizeBytes + plan.zero_bytes) {}
};

void prepare_depthwise_q8(const OpArgs& args, Isa isa, std::byte* state) {
  const auto& a = args.attrs<DepthwiseQ8Attrs>();
  const DepthwisePlan plan = plan_depthwise_q8(args, isa);
  new (state) RequantizeQ8(requantize_params(requantize_attrs(a), requantize_operands(args)));
  std::byte* zero = state + DepthwisePlan::kRequantizeBytes;
  std::memset(zero, a.x_zero & 0xff, plan.zero_bytes);
  const DepthwiseQ8Weights weights{args.in(1).as<const int8_t>(), args.in(2).as<const int32_t>(),
                                   args.in(3).as<const float>(),  plan.channels,
                                   plan.window.kernel_h,          plan.window.kernel_w};
  const int32_t n = std::min(plan.kernel->channels, plan.channels);
  for (int32_t block = 0; block < plan.blocks; ++block) {
    std::byte* packed = zero + plan.zero_bytes + static_cast<size_t>(block) * plan.block_bytes;
    plan.kernel->pack(weights, std::min(block * plan.kernel->channels, plan.channels - n), n, packed);
  }
}

struct StripTask {
  const OpArgs& args;
  const DepthwisePlan& plan;
  const DepthwiseState& state;
  const uint8_t** rows;  // the strip's input rows
  uint8_t* copies;
};

// Gives the pixels of a row the width of a block.
const uint8_t* copy_row(const StripTask& t, const uint8_t* row, int32_t index) {
  const TensorView& x = t.args.in(0);
  const int64_t pixel = t.plan.kernel->narrowest;
  uint8_t* copy = t.copies + index * int64_t{x.dims[2]} * pixel;
  for (int64_t ix = 0; ix < x.dims[2]; ++ix) {
    std::memcpy(copy + ix * pixel, row + ix * x.strides[2], static_cast<size_t>(t.plan.channels));
  }
  return copy;
}

void point_rows(const StripTask& t, int64_t n, int64_t first_iy) {
  const TensorView& x = t.args.in(0);
  for (int32_t row = 0; row < t.plan.strip_rows; ++row) {
    // The rows of a dilated window are dilation_h apart; a strip of several rows has no dilation.
    const int64_t iy = first_iy + int64_t{row} * t.plan.window.dilation_h;
    const bool inside = iy >= 0 && iy < x.dims[1];
    t.rows[row] = inside ? x.as<const uint8_t>() + n * x.strides[0] + iy * x.strides[1] : nullptr;
    if (inside && t.plan.narrow) t.rows[row] = copy_row(t, t.rows[row], row);
  }
}

// What is the same in all strips.
DepthwiseQ8Strip make_strip(const StripTask& t) {
  const TensorView& x = t.args.in(0);
  DepthwiseQ8Strip s{};
  s.rows = t.rows;
  s.x_step = t.plan.narrow ? t.plan.kernel->narrowest : x.strides[2];
  s.zero = t.state.zero;
  s.w = x.dims[2];
  s.window = t.plan.window;
  s.packed = t.state.packed;
  s.block_bytes = t.plan.block_bytes;
  s.channels = t.plan.channels;
  s.y_step = t.args.out(0).strides[2];
  s.requantize = &t.state.requantize;
  if (t.state.requantize.add) s.residual_step = t.args.in(5).strides[2];
  return s;
}

// Output rows from strip `strip` on, counted over all images.
void point_strip(const StripTask& t, int64_t strip, int64_t strips, DepthwiseQ8Strip& s) {
  const TensorView& y = t.args.out(0);
  const int64_t n = strip / strips;
  const int64_t oy = strip % strips * t.plan.kernel->out_rows;
  const auto row_of = [&](const TensorView& view, int row) {
    return view.as<uint8_t>() + n * view.strides[0] + (oy + row) * view.strides[1];
  };
  point_rows(t, n, t.plan.window.first_row(oy));
  s.out_rows = static_cast<int>(std::min<int64_t>(t.plan.kernel->out_rows, y.dims[1] - oy));
  for (int row = 0; row < s.out_rows; ++row) {
    s.y[row] = row_of(y, row);
    if (t.state.requantize.add) s.residual[row] = row_of(t.args.in(5), row);
  }
}

// The weights of a group of blocks stay in level 1 while its columns and rows pass by.
void run_strips(const StripTask& t, int64_t begin, int64_t end, int64_t strips) {
  const int32_t out_w = t.args.out(0).dims[2];
  DepthwiseQ8Strip s = make_strip(t);
  for (int32_t block = 0; block < t.plan.blocks; block += t.plan.group_blocks) {
    s.first_block = block;
    s.last_block = std::min(block + t.plan.group_blocks, t.plan.blocks);
    for (int32_t ox = 0; ox < out_w; ox += t.plan.tile_columns) {
      s.first_ox = ox;
      s.last_ox = std::min(ox + t.plan.tile_columns, out_w);
      for (int64_t strip = begin; strip < end; ++strip) {
        point_strip(t, strip, strips, s);
        t.plan.kernel->strip(s);
      }
    }
  }
}

Status run_depthwise_q8(const OpArgs& args, RunContext& context) {
  const DepthwisePlan plan = plan_depthwise_q8(args, context.isa);
  const DepthwiseState state(plan, context.state);
  const TensorView& y = args.out(0);
  const int64_t strips = (y.dims[1] + plan.kernel->out_rows - 1) / plan.kernel->out_rows;
  const double strip_macs = static_cast<double>(plan.kernel->out_rows) * y.dims[2] * plan.channels *
                            plan.window.kernel_h * plan.window.kernel_w;
  parallel_for(context, y.dims[0] * strips, strip_macs * plan.kernel->mac_ns,
               [&](int64_t begin, int64_t end, int worker) {
                 std::byte* own = context.scratch + static_cast<size_t>(worker) * plan.worker_bytes();
                 const StripTask task{args, plan, state, reinterpret_cast<const uint8_t**>(own),
                                      reinterpret_cast<uint8_t*>(own + plan.pointer_bytes)};
                 run_strips(task, begin, end, strips);
               });
  return Status::ok();
}

int ways_depthwise_q8(const OpArgs& args, int, Isa isa) {
  return depthwise_q8_count(isa, args.in(0).dtype, conv_window(args.attrs<DepthwiseQ8Attrs>())) * kTiles;
}

std::string kernel_depthwise_q8(const OpArgs& args, Isa isa) {
  const int kernels = depthwise_q8_count(isa, args.in(0).dtype, conv_window(args.attrs<DepthwiseQ8Attrs>()));
  const int tile = args.way / kernels;
  const std::string name = plan_depthwise_q8(args, isa).kernel->name;
  return tile == 0 ? name : name + " tiles of " + std::to_string(kTileKib[tile]) + " KiB";
}

}  // namespace

const OpDef kDepthwiseQ8Op = {Opcode::kDepthwiseQ8, "depthwise_q8",      check_depthwise_q8,
                              scratch_depthwise_q8, run_depthwise_q8,    state_depthwise_q8,
                              prepare_depthwise_q8, kernel_depthwise_q8, ways_depthwise_q8};

}  // namespace edgekit
