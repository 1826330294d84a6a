#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/reduce/reduce_loops.h"

namespace edgekit {
namespace {

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<ArgReduceAttrs>();
  const TensorView &x = args.in(0), &y = args.out(0);
  if (x.dtype == Dtype::kBool) return invalid("arg_reduce on bool");
  EK_RETURN_IF_ERROR(expect_dtype("y", y, Dtype::kI64));
  EK_RETURN_IF_ERROR(expect_rank("x", x, 1, kMaxRank));
  EK_RETURN_IF_ERROR(expect_rank("y", y, x.rank, x.rank));
  EK_RETURN_IF_ERROR(expect_in_range("axis", attrs.axis, 0, x.rank - 1));
  EK_RETURN_IF_ERROR(expect_in_range("least", attrs.least, 0, 1));
  EK_RETURN_IF_ERROR(expect_in_range("select_last", attrs.select_last, 0, 1));
  for (int i = 0; i < x.rank; ++i) {
    const int32_t expected = i == attrs.axis ? 1 : x.dims[i];
    if (y.dims[i] != expected)
      return invalid("arg_reduce: y has extent %d on axis %d, expected %d", y.dims[i], i, expected);
  }
  return expect_writable("y", y);
}

// beats(value, best): whether a later value replaces an earlier one.
template <typename T, typename Beats>
void search(const OpArgs& args, RunContext& context, Beats&& beats) {
  const TensorView &x = args.in(0), &y = args.out(0);
  const ReduceLoops loops = reduce_loops(x, y, 1u << args.attrs<ArgReduceAttrs>().axis);
  const int64_t x_step = loops.kept.run_stride(0), y_step = loops.kept.run_stride(1);
  const int64_t length = loops.reduced.run_length(), stride = loops.reduced.run_stride(0);
  parallel_blocks(context, loops, [&](int64_t x_at, int64_t y_at, int64_t count) {
    T best[kReduceBlock];
    int64_t place[kReduceBlock] = {};
    const T* from = x.as<const T>() + x_at;
    for (int64_t j = 0; j < count; ++j) best[j] = from[j * x_step];
    for (int64_t r = 1; r < length; ++r) {
      for (int64_t j = 0; j < count; ++j) {
        const T value = from[r * stride + j * x_step];
        const bool better = beats(value, best[j]);
        best[j] = better ? value : best[j];
        place[j] = better ? r : place[j];
      }
    }
    for (int64_t j = 0; j < count; ++j) y.as<int64_t>()[y_at + j * y_step] = place[j];
  });
}

template <typename T>
void search_kind(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<ArgReduceAttrs>();
  const bool last = attrs.select_last != 0;
  if (attrs.least != 0) {
    last ? search<T>(args, context, [](T value, T best) { return value <= best; })
         : search<T>(args, context, [](T value, T best) { return value < best; });
  } else {
    last ? search<T>(args, context, [](T value, T best) { return value >= best; })
         : search<T>(args, context, [](T value, T best) { return value > best; });
  }
}

Status run(const OpArgs& args, RunContext& context) {
  switch (args.in(0).dtype) {
    case Dtype::kF32:
      search_kind<float>(args, context);
      break;
    case Dtype::kI32:
      search_kind<int32_t>(args, context);
      break;
    case Dtype::kI64:
      search_kind<int64_t>(args, context);
      break;
    case Dtype::kU8:
      search_kind<uint8_t>(args, context);
      break;
    default:
      search_kind<int8_t>(args, context);
  }
  return Status::ok();
}

}  // namespace

const OpDef kArgReduceOp = {Opcode::kArgReduce, "arg_reduce", check, nullptr, run};

}  // namespace edgekit
