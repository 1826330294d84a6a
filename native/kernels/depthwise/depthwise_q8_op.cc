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

// State: the requantization, a pixel of x_zero, then the packed weights of all blocks. Scratch: for each worker the
// pointers and steps of a strip's input rows, and copies of those rows if the tensor is narrower than a block.
struct DepthwisePlan {
  static constexpr size_t kRequantizeBytes = (sizeof(RequantizeQ8) + 63) / 64 * 64;
  const DepthwiseQ8Kernel* kernel;
  ConvWindow window;
  int32_t channels, blocks;
  int32_t strip_rows;  // input rows of one strip
  bool narrow;         // pixels hold fewer bytes than kernels read
  size_t block_bytes, zero_bytes, pointer_bytes, copy_bytes;

  // Blocks overlap at the end of the channels, so that none is partly empty unless the tensor itself is narrower.
  int32_t first_channel(int32_t block) const {
    return std::max(0, std::min(block * kernel->channels, channels - kernel->channels));
  }
  size_t state_bytes() const { return kRequantizeBytes + zero_bytes + block_bytes * static_cast<size_t>(blocks); }
  size_t worker_bytes() const { return pointer_bytes + copy_bytes; }
};

DepthwisePlan plan_depthwise_q8(const OpArgs& args, Isa isa) {
  DepthwisePlan plan{};
  plan.window = conv_window(args.attrs<DepthwiseQ8Attrs>());
  plan.kernel = &select_depthwise_q8(isa, args.in(0).dtype, plan.window);
  plan.channels = args.in(0).dims[3];
  plan.blocks = (plan.channels + plan.kernel->channels - 1) / plan.kernel->channels;
  plan.block_bytes = plan.kernel->packed_bytes(plan.window.kernel_h, plan.window.kernel_w);
  plan.zero_bytes = static_cast<size_t>(plan.kernel->channels + 63) / 64 * 64;
  plan.strip_rows = plan.window.kernel_h + (plan.kernel->out_rows - 1) * plan.window.stride_h;
  plan.narrow = plan.channels < plan.kernel->channels;
  const size_t rows = static_cast<size_t>(plan.strip_rows);
  plan.pointer_bytes = (rows * (2 * sizeof(void*) + sizeof(int64_t)) + 63) / 64 * 64;
  const size_t row_bytes = static_cast<size_t>(args.in(0).dims[2]) * static_cast<size_t>(plan.kernel->channels);
  plan.copy_bytes = plan.narrow ? (rows * row_bytes + 63) / 64 * 64 : 0;
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
  for (int32_t block = 0; block < plan.blocks; ++block) {
    const int32_t n = std::min(plan.kernel->channels, plan.channels);
    std::byte* packed = zero + plan.zero_bytes + static_cast<size_t>(block) * plan.block_bytes;
    plan.kernel->pack(weights, plan.first_channel(block), n, packed);
  }
}

struct StripTask {
  const OpArgs& args;
  const DepthwisePlan& plan;
  const DepthwiseState& state;
  const uint8_t** rows;        // the strip's input rows at channel 0
  const uint8_t** block_rows;  // the same at the block's channel
  int64_t* steps;
  uint8_t* copies;
};

// Gives the pixels of a row the width of a block.
const uint8_t* copy_row(const StripTask& t, const uint8_t* row, int64_t step, int32_t index) {
  const int64_t width = t.args.in(0).dims[2];
  const int64_t block = t.plan.kernel->channels;
  uint8_t* copy = t.copies + index * width * block;
  for (int64_t ix = 0; ix < width; ++ix) {
    std::memcpy(copy + ix * block, row + ix * step, static_cast<size_t>(t.plan.channels));
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
    t.steps[row] = inside ? x.strides[2] : 0;
    if (!inside || !t.plan.narrow) continue;
    t.rows[row] = copy_row(t, t.rows[row], t.steps[row], row);
    t.steps[row] = t.plan.kernel->channels;
  }
}

void run_strip(const StripTask& t, int64_t n, int64_t oy, int out_rows) {
  const TensorView& y = t.args.out(0);
  const TensorView* residual = t.state.requantize.add ? t.args.inputs[5] : nullptr;
  point_rows(t, n, t.plan.window.first_row(oy));
  DepthwiseQ8Strip s{};
  s.rows = t.block_rows;
  s.steps = t.steps;
  s.zero = t.state.zero;
  s.w = t.args.in(0).dims[2];
  s.window = t.plan.window;
  s.out_w = y.dims[2];
  s.out_rows = out_rows;
  s.y_step = y.strides[2];
  s.requantize = &t.state.requantize;
  for (int32_t block = 0; block < t.plan.blocks; ++block) {
    const int32_t base = t.plan.first_channel(block);
    s.first = block * t.plan.kernel->channels - base;
    s.count = std::min(t.plan.kernel->channels, t.plan.channels - base) - s.first;
    s.packed = t.state.packed + static_cast<size_t>(block) * t.plan.block_bytes;
    for (int32_t row = 0; row < t.plan.strip_rows; ++row) {
      t.block_rows[row] = t.rows[row] == nullptr ? t.state.zero : t.rows[row] + base;
    }
    for (int row = 0; row < out_rows; ++row) {
      s.y[row] = y.as<uint8_t>() + n * y.strides[0] + (oy + row) * y.strides[1] + base;
      if (residual == nullptr) continue;
      s.residual[row] =
          residual->as<const uint8_t>() + n * residual->strides[0] + (oy + row) * residual->strides[1] + base;
      s.residual_step = residual->strides[2];
    }
    t.plan.kernel->strip(s);
  }
}

Status run_depthwise_q8(const OpArgs& args, RunContext& context) {
  const DepthwisePlan plan = plan_depthwise_q8(args, context.isa);
  const DepthwiseState state(plan, context.state);
  const TensorView& y = args.out(0);
  const int64_t strips = (y.dims[1] + plan.kernel->out_rows - 1) / plan.kernel->out_rows;
  const double strip_macs = static_cast<double>(plan.kernel->out_rows) * y.dims[2] * plan.channels *
                            plan.window.kernel_h * plan.window.kernel_w;
  parallel_for(
      context, y.dims[0] * strips, strip_macs * plan.kernel->mac_ns, [&](int64_t begin, int64_t end, int worker) {
        std::byte* own = context.scratch + static_cast<size_t>(worker) * plan.worker_bytes();
        auto** rows = reinterpret_cast<const uint8_t**>(own);
        StripTask task{args,
                       plan,
                       state,
                       rows,
                       rows + plan.strip_rows,
                       reinterpret_cast<int64_t*>(rows + 2 * static_cast<ptrdiff_t>(plan.strip_rows)),
                       reinterpret_cast<uint8_t*>(own + plan.pointer_bytes)};
        for (int64_t i = begin; i < end; ++i) {
          const int64_t oy = i % strips * plan.kernel->out_rows;
          run_strip(task, i / strips, oy, static_cast<int>(std::min<int64_t>(plan.kernel->out_rows, y.dims[1] - oy)));
        }
      });
  return Status::ok();
}

}  // namespace

const OpDef kDepthwiseQ8Op = {Opcode::kDepthwiseQ8, "depthwise_q8",     check_depthwise_q8,  scratch_depthwise_q8,
                              run_depthwise_q8,     state_depthwise_q8, prepare_depthwise_q8};

}  // namespace edgekit
