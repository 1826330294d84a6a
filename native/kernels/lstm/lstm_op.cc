// lstm: the input part of all gates is one product over all steps, then each step adds the product of the last hidden
// state. A gate is (bias + x W) + h R, each product summed by ascending fused multiply-adds.
#include "kernels/copy/transpose.h"
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"

namespace edgekit {
namespace {

enum Input { kX, kW, kR, kB, kH0, kC0 };
enum Output { kY, kLastH, kLastC };

const TensorView* optional_input(const OpArgs& args, int i) { return i < args.input_count ? args.inputs[i] : nullptr; }
const TensorView* optional_output(const OpArgs& args, int i) {
  return i < args.output_count ? args.outputs[i] : nullptr;
}

Status expect_f32_dims(const char* name, const TensorView& view, std::initializer_list<int64_t> dims) {
  EK_RETURN_IF_ERROR(expect_dtype(name, view, Dtype::kF32));
  bool equal = view.rank == static_cast<int>(dims.size());
  int axis = 0;
  for (const int64_t dim : dims) equal = equal && view.dims[axis++] == dim;
  return equal ? Status::ok() : invalid("lstm: %s has the wrong dims", name);
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<LstmAttrs>();
  const TensorView &x = args.in(kX), &w = args.in(kW);
  EK_RETURN_IF_ERROR(expect_in_range("direction", attrs.direction, 0, kLstmDirectionCount - 1));
  EK_RETURN_IF_ERROR(expect_in_range("hidden", attrs.hidden, 1, 1 << 20));
  const bool both = attrs.direction == static_cast<int32_t>(LstmDirection::kBidirectional);
  const int64_t directions = both ? 2 : 1, hidden = attrs.hidden;
  EK_RETURN_IF_ERROR(expect_rank("x", x, 3, 3));
  const int64_t steps = x.dims[0], batch = x.dims[1];
  EK_RETURN_IF_ERROR(expect_f32_dims("x", x, {steps, batch, x.dims[2]}));
  EK_RETURN_IF_ERROR(expect_f32_dims("w", w, {directions, 4 * hidden, x.dims[2]}));
  EK_RETURN_IF_ERROR(expect_f32_dims("r", args.in(kR), {directions, 4 * hidden, hidden}));
  if (!w.is_dense() || !args.in(kR).is_dense()) return invalid("lstm: w and r must be dense");
  if (const TensorView* b = optional_input(args, kB))
    EK_RETURN_IF_ERROR(expect_f32_dims("b", *b, {directions, 8 * hidden}));
  for (const int i : {kH0, kC0}) {
    const TensorView* state = optional_input(args, i);
    if (state != nullptr) EK_RETURN_IF_ERROR(expect_f32_dims("initial state", *state, {directions, batch, hidden}));
  }
  const TensorView* y = optional_output(args, kY);
  if (y != nullptr) EK_RETURN_IF_ERROR(expect_f32_dims("y", *y, {steps, directions, batch, hidden}));
  for (const int i : {kLastH, kLastC}) {
    const TensorView* state = optional_output(args, i);
    if (state != nullptr) EK_RETURN_IF_ERROR(expect_f32_dims("last state", *state, {directions, batch, hidden}));
  }
  return Status::ok();
}

// Sizes of one direction, and where its parts lie in scratch (in floats).
struct Plan {
  int64_t steps, batch, inputs, hidden, panels, gate_floats;  // gate_floats: the gates of one row, padded to panels
  int nr;
  size_t rows_at, gates_at, weights_at, hidden_at, cell_at, step_at, total;
};

Plan plan_of(const OpArgs& args, const GemmF32Kernels& kernels) {
  const TensorView& x = args.in(kX);
  Plan p = {};
  p.steps = x.dims[0];
  p.batch = x.dims[1];
  p.inputs = x.dims[2];
  p.hidden = args.attrs<LstmAttrs>().hidden;
  p.nr = kernels.nr != 0 ? kernels.nr : 16;
  p.panels = (4 * p.hidden + p.nr - 1) / p.nr;
  p.gate_floats = p.panels * p.nr;
  size_t at = 0;
  const auto reserve = [&](int64_t floats) {
    const size_t begin = at;
    at += (static_cast<size_t>(floats) + 15) / 16 * 16;
    return begin;
  };
  p.rows_at = reserve(p.steps * p.batch * p.inputs);                     // x, dense
  p.gates_at = reserve(p.steps * p.batch * p.gate_floats);               // bias + x W of every step
  p.weights_at = reserve(p.gate_floats * std::max(p.inputs, p.hidden));  // panels of W, then of R
  p.hidden_at = reserve(p.batch * p.hidden);
  p.cell_at = reserve(p.batch * p.hidden);
  p.step_at = reserve(p.batch * p.gate_floats);  // h R of one step
  p.total = at;
  return p;
}

size_t scratch_bytes(const OpArgs& args, int, Isa isa) {
  return plan_of(args, gemm_f32_kernels(isa)).total * sizeof(float);
}

// Panel `panel` of a [gates, depth] matrix as [depth][nr], padded with zeros.
void pack_panel(const Plan& p, const float* matrix, int64_t depth, int64_t panel, float* packed) {
  const int64_t first = panel * p.nr, columns = std::min<int64_t>(p.nr, 4 * p.hidden - first);
  if (columns < p.nr) std::fill_n(packed, depth * p.nr, 0.0f);
  transpose_plane(matrix + first * depth, depth, packed, p.nr, columns, depth, sizeof(float));
}

// out[row][panel's columns] = init + rows . panel, for `count` dense rows; out rows are gate_floats apart.
void multiply_panel(const GemmF32Kernels& kernels, const Plan& p, const float* rows, int64_t count, int64_t depth,
                    const float* panel, const float* init, float* out) {
  const GemmEpilogue epilogue = gemm_epilogue({}, false);
  const RowSteps steps[kMostBlockTiles] = {};
  const float* pointers[kMostBlockRows];
  float* places[kMostBlockRows];
  const int64_t block_rows = int64_t{kMostBlockTiles} * kernels.mr;
  for (int64_t first = 0; first < count; first += block_rows) {
    GemmBlock block = {};
    block.rows = std::min(block_rows, count - first);
    for (int64_t r = 0; r < block.rows; ++r) {
      pointers[r] = rows + (first + r) * depth;
      places[r] = out + (first + r) * p.gate_floats;
    }
    block.a = pointers;
    block.steps = steps;
    block.tile_rows = kernels.mr;
    block.lines = block.runs = 1;
    block.depth = depth;
    block.b = panel;
    block.b_step = block.nr = block.columns = p.nr;
    block.init = init;
    block.epilogue = &epilogue;
    block.y = places;
    kernels.block(block);
  }
}

// One direction of one run.
struct Direction {
  const OpArgs& args;
  RunContext& context;
  const GemmF32Kernels& gemm;
  const ElementwiseKernels& elementwise;
  const Plan& p;
  float* scratch;
  int64_t index;
  bool backwards;
};

void copy_rows(const Direction& d) {
  const TensorView& x = d.args.in(kX);
  float* row = d.scratch + d.p.rows_at;
  for (int64_t t = 0; t < d.p.steps; ++t) {
    for (int64_t n = 0; n < d.p.batch; ++n, row += d.p.inputs) {
      const float* from = x.as<const float>() + t * x.strides[0] + n * x.strides[1];
      for (int64_t i = 0; i < d.p.inputs; ++i) row[i] = from[i * x.strides[2]];
    }
  }
}

void load_bias(const Direction& d, int64_t panel, float* init) {
  std::fill_n(init, kMostPanelColumns, 0.0f);
  const TensorView* b = optional_input(d.args, kB);
  if (b == nullptr) return;
  const float* bias = b->as<const float>() + d.index * b->strides[0];
  const int64_t first = panel * d.p.nr, columns = std::min<int64_t>(d.p.nr, 4 * d.p.hidden - first);
  for (int64_t c = 0; c < columns; ++c) {
    init[c] = bias[(first + c) * b->strides[1]] + bias[(4 * d.p.hidden + first + c) * b->strides[1]];
  }
}

// bias + x W for all steps, and then R packed in the place of W.
void input_gates(const Direction& d) {
  const Plan& p = d.p;
  const float* w = d.args.in(kW).as<const float>() + d.index * 4 * p.hidden * p.inputs;
  const float* r = d.args.in(kR).as<const float>() + d.index * 4 * p.hidden * p.hidden;
  const int64_t rows = p.steps * p.batch;
  const int64_t panel_floats = p.nr * std::max(p.inputs, p.hidden);
  const double panel_ns = static_cast<double>(p.nr * (rows + 4) * p.inputs) / 30.0;
  parallel_for(d.context, p.panels, panel_ns, [&](int64_t begin, int64_t end, int) {
    float init[kMostPanelColumns];
    for (int64_t panel = begin; panel < end; ++panel) {
      float* packed = d.scratch + p.weights_at + panel * panel_floats;
      load_bias(d, panel, init);
      pack_panel(p, w, p.inputs, panel, packed);
      multiply_panel(d.gemm, p, d.scratch + p.rows_at, rows, p.inputs, packed, init,
                     d.scratch + p.gates_at + panel * p.nr);
      pack_panel(p, r, p.hidden, panel, packed);
    }
  });
}

void load_state(const Direction& d, int input, float* state) {
  const TensorView* from = optional_input(d.args, input);
  for (int64_t n = 0; n < d.p.batch; ++n) {
    for (int64_t i = 0; i < d.p.hidden; ++i) {
      state[n * d.p.hidden + i] =
          from == nullptr
              ? 0.0f
              : from->as<const float>()[d.index * from->strides[0] + n * from->strides[1] + i * from->strides[2]];
    }
  }
}

void store_state(const Direction& d, int output, const float* state) {
  const TensorView* to = optional_output(d.args, output);
  if (to == nullptr) return;
  for (int64_t n = 0; n < d.p.batch; ++n) {
    for (int64_t i = 0; i < d.p.hidden; ++i) {
      to->as<float>()[d.index * to->strides[0] + n * to->strides[1] + i * to->strides[2]] = state[n * d.p.hidden + i];
    }
  }
}

// The new cell and hidden state of one row. gates: input, output, forget, cell; overwritten.
void advance_row(const Direction& d, float* gates, const float* recurrent, float* cell, float* hidden) {
  const int64_t h = d.p.hidden;
  d.elementwise.binary(BinaryKind::kAdd, gates, recurrent, gates, 4 * h);
  d.elementwise.activate({Activation::kSigmoid, 0, 0}, gates, gates, 3 * h);
  d.elementwise.activate({Activation::kTanh, 0, 0}, gates + 3 * h, gates + 3 * h, h);
  for (int64_t i = 0; i < h; ++i) cell[i] = gates[2 * h + i] * cell[i] + gates[i] * gates[3 * h + i];
  d.elementwise.activate({Activation::kTanh, 0, 0}, cell, hidden, h);
  for (int64_t i = 0; i < h; ++i) hidden[i] = gates[h + i] * hidden[i];
}

void store_step(const Direction& d, int64_t t, const float* hidden) {
  const TensorView* y = optional_output(d.args, kY);
  if (y == nullptr) return;
  for (int64_t n = 0; n < d.p.batch; ++n) {
    float* to = y->as<float>() + t * y->strides[0] + d.index * y->strides[1] + n * y->strides[2];
    for (int64_t i = 0; i < d.p.hidden; ++i) to[i * y->strides[3]] = hidden[n * d.p.hidden + i];
  }
}

void run_direction(const Direction& d) {
  const Plan& p = d.p;
  copy_rows(d);
  input_gates(d);
  float* hidden = d.scratch + p.hidden_at;
  float* cell = d.scratch + p.cell_at;
  float* recurrent = d.scratch + p.step_at;
  load_state(d, kH0, hidden);
  load_state(d, kC0, cell);
  const float zeros[kMostPanelColumns] = {};
  const int64_t panel_floats = p.nr * std::max(p.inputs, p.hidden);
  const double panel_ns = static_cast<double>(p.nr * p.batch * p.hidden) / 10.0;
  for (int64_t step = 0; step < p.steps; ++step) {
    const int64_t t = d.backwards ? p.steps - 1 - step : step;
    parallel_for(d.context, p.panels, panel_ns, [&](int64_t begin, int64_t end, int) {
      for (int64_t panel = begin; panel < end; ++panel) {
        multiply_panel(d.gemm, p, hidden, p.batch, p.hidden, d.scratch + p.weights_at + panel * panel_floats, zeros,
                       recurrent + panel * p.nr);
      }
    });
    float* gates = d.scratch + p.gates_at + t * p.batch * p.gate_floats;
    for (int64_t n = 0; n < p.batch; ++n) {
      advance_row(d, gates + n * p.gate_floats, recurrent + n * p.gate_floats, cell + n * p.hidden,
                  hidden + n * p.hidden);
    }
    store_step(d, t, hidden);
  }
  store_state(d, kLastH, hidden);
  store_state(d, kLastC, cell);
}

Status run(const OpArgs& args, RunContext& context) {
  const GemmF32Kernels& gemm = gemm_f32_kernels(context.isa);
  const Plan p = plan_of(args, gemm);
  const auto direction = static_cast<LstmDirection>(args.attrs<LstmAttrs>().direction);
  for (int64_t index = 0; index < args.in(kW).dims[0]; ++index) {
    const bool backwards = direction == LstmDirection::kReverse || index == 1;
    run_direction({args, context, gemm, elementwise_kernels(context.isa), p, reinterpret_cast<float*>(context.scratch),
                   index, backwards});
  }
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return std::string("gemm_f32_") + gemm_f32_kernel_space(isa); }

}  // namespace

const OpDef kLstmOp = {Opcode::kLstm, "lstm", check, scratch_bytes, run, nullptr, nullptr, kernel};

}  // namespace edgekit
