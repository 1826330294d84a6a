// conv_q8: checks its operands, then sweeps weight panels over blocks of packed rows.
#include <algorithm>
#include <new>

#include "kernels/gemm/conv_q8_plan.h"
#include "kernels/gemm/conv_q8_words.h"
#include "kernels/gemm/weight_rows.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"

namespace edgekit {
namespace {

Status check_weights(const OpArgs& args) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  const int64_t in_channels = args.in(0).dims[3];
  const int64_t out_channels = args.out(0).dims[3];
  EK_RETURN_IF_ERROR(expect_in_range("groups", a.groups, 1, std::min(in_channels, out_channels)));
  if (in_channels % a.groups != 0 || out_channels % a.groups != 0) {
    return invalid("%lld input and %lld output channels do not divide into %d groups",
                   static_cast<long long>(in_channels), static_cast<long long>(out_channels), a.groups);
  }
  EK_RETURN_IF_ERROR(expect_in_range("nr", a.nr, 1, kGemmQ8MostColumns));
  EK_RETURN_IF_ERROR(expect_in_range("kg", a.kg, 1, kGemmQ8MostDepthGroup));
  const ConvQ8Source source = conv_q8_source(args.in(0), args.out(0), a);
  const int64_t depth_groups = source.depth_groups();
  EK_RETURN_IF_ERROR(expect_in_range("depth groups", depth_groups, 1, INT32_MAX));
  const int64_t panels = (out_channels / a.groups + a.nr - 1) / a.nr;
  const int64_t lanes = int64_t{a.nr} * a.kg;
  EK_RETURN_IF_ERROR(expect_vector("bias", args.in(2), Dtype::kI32, out_channels));
  const auto given = [&](int i) { return args.input_count > i && args.inputs[i] != nullptr; };
  const bool is_list = given(6) || given(7) || given(8);
  if (a.groups > 1 || is_list) {  // a session may widen them
    EK_RETURN_IF_ERROR(expect_constant("w", args.in(1)));
    EK_RETURN_IF_ERROR(expect_constant("bias", args.in(2)));
  }
  if (!is_list) {
    const int64_t dims[4] = {a.groups, panels, depth_groups, lanes};
    return expect_dense("w", args.in(1), Dtype::kS8, dims, 4);
  }
  EK_RETURN_IF_ERROR(check_weight_rows(args, source, a.groups * panels));
  const int64_t dims[2] = {args.in(7).dims[0], lanes};
  return expect_dense("w", args.in(1), Dtype::kS8, dims, 2);
}

RequantizeOperands requantize_operands(const OpArgs& args) {
  return {args.out(0), args.in(3), args.input_count > 4 ? args.inputs[4] : nullptr,
          args.input_count > 5 ? args.inputs[5] : nullptr};
}

Status check_conv_q8(const OpArgs& args) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  EK_RETURN_IF_ERROR(check_conv_window(conv_window(a), args.in(0), args.out(0)));
  EK_RETURN_IF_ERROR(check_weights(args));
  EK_RETURN_IF_ERROR(expect_same_dtype("x", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_writable("y", args.out(0)));
  return check_requantize(requantize_attrs(a), requantize_operands(args));
}

size_t scratch_conv_q8(const OpArgs& args, int threads, Isa isa) {
  const size_t bytes = std::max(plan_conv_q8(args, isa).scratch_bytes, conv_q8_word_scratch(args, isa));
  return bytes * static_cast<size_t>(threads);
}

// What a session keeps of an op; the lists of the words or of the bands lie behind it.
struct alignas(64) ConvQ8State {
  RequantizeQ8 requantize;
  ConvQ8Bands bands;
  ConvQ8Words words;
};

size_t state_conv_q8(const OpArgs& args, Isa isa) {
  const size_t words = conv_q8_word_bytes(args, isa);
  return sizeof(ConvQ8State) + (words > 0 ? words : conv_q8_band_bytes(args, isa));
}

void prepare_conv_q8(const OpArgs& args, Isa isa, std::byte* state) {
  std::byte* lists = state + sizeof(ConvQ8State);
  const bool has_words = conv_q8_word_bytes(args, isa) > 0;
  const bool has_bands = !has_words && conv_q8_way(args, isa).bands;
  new (state) ConvQ8State{requantize_params(requantize_attrs(args.attrs<ConvQ8Attrs>()), requantize_operands(args)),
                          has_bands ? make_conv_q8_bands(args, isa, reinterpret_cast<int64_t*>(lists)) : ConvQ8Bands{},
                          has_words ? make_conv_q8_words(args, isa, lists) : ConvQ8Words{}};
}

// Rows of y and panels of B, of one worker.
void run_part(const ConvQ8Task& task, const ConvQ8Words& words, Span rows, Span panels) {
  if (words.kernel != nullptr) return run_conv_q8_words(task, words, rows, panels);
  run_conv_q8_task(task, rows, panels);
}

Status run_conv_q8(const OpArgs& args, RunContext& context) {
  const ConvQ8Plan plan = plan_conv_q8(args, context.isa);
  const auto& state = *reinterpret_cast<const ConvQ8State*>(context.state);
  const int64_t row_tiles = (plan.rows + plan.kernel->mr - 1) / plan.kernel->mr;
  const int64_t columns = plan.groups * plan.panels;
  const double macs = static_cast<double>(plan.rows) * static_cast<double>(plan.source.row_bytes()) *
                      static_cast<double>(args.out(0).dims[3]);
  const size_t scratch_bytes = scratch_conv_q8(args, 1, context.isa);
  const double total_ns = macs * plan.kernel->mac_ns;
  // Rows are packed once a thread, weights are read once a thread: split the larger of the two.
  const bool by_columns =
      (row_tiles < 2 * int64_t{context.threads} || args.out(0).dims[3] > 4 * plan.rows) != plan.turned;
  const int64_t units = by_columns ? columns : row_tiles;
  parallel_for(context, units, total_ns / static_cast<double>(units), [&](int64_t begin, int64_t end, int worker) {
    ConvQ8Task task{plan, args, state.requantize, state.bands,
                    context.scratch + static_cast<size_t>(worker) * scratch_bytes};
    if (by_columns) {
      run_part(task, state.words, {0, plan.rows}, {begin, end});
    } else {
      run_part(task, state.words, {begin * plan.kernel->mr, std::min(end * plan.kernel->mr, plan.rows)}, {0, columns});
    }
  });
  return Status::ok();
}

}  // namespace

const OpDef kConvQ8Op = {Opcode::kConvQ8, "conv_q8",       check_conv_q8,    scratch_conv_q8, run_conv_q8,
                         state_conv_q8,   prepare_conv_q8, conv_q8_way_name, conv_q8_ways};

}  // namespace edgekit
