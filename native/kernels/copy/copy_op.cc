// y = x with any strides: moves of runs where both sides are dense, blocked transposition where each side is dense
// along another dim, and an element loop for the rest. memmove: what a hostile program overlaps is garbage, not a
// fault.
#include <cstring>

#include "kernels/copy/transpose.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check(const OpArgs& args) {
  EK_RETURN_IF_ERROR(expect_same_dtype("x", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("x", args.in(0), "y", args.out(0)));
  return expect_writable("y", args.out(0));
}

// The loop along which x is dense, other than the innermost; -1: none.
int dense_input_loop(const LoopNest<2>& nest) {
  for (int i = 0; i + 1 < nest.rank; ++i) {
    if (nest.strides[0][i] == 1) return i;
  }
  return -1;
}

// Planes of (loop `dense`, innermost loop): x is dense along the former, y along the latter.
void copy_planes(const OpArgs& args, RunContext& context, const LoopNest<2>& nest, int dense, int element_bytes) {
  LoopNest<2> outer;
  for (int i = 0; i + 1 < nest.rank; ++i) {
    const int64_t strides[2] = {nest.strides[0][i], nest.strides[1][i]};
    if (i != dense) append_loop(outer, nest.dims[i], strides);
  }
  const int64_t planes = outer.run_count() * outer.run_length();
  LoopNest<2> each = outer;  // one run of one plane for each step
  each.dims[each.rank] = 1;
  each.strides[0][each.rank] = each.strides[1][each.rank] = 0;
  ++each.rank;

  const int64_t rows = nest.run_length(), columns = nest.dims[dense];
  const int64_t x_step = nest.run_stride(0), y_step = nest.strides[1][dense];
  // Cut along the longer side, in bands that keep cache lines whole.
  const bool by_columns = columns >= rows;
  const int64_t bands = ((by_columns ? columns : rows) + 63) / 64;
  const double band_ns = 64.0 * static_cast<double>(by_columns ? rows : columns) * 0.1 * element_bytes;
  parallel_for(context, bands, band_ns * static_cast<double>(planes), [&](int64_t begin, int64_t end, int) {
    const int64_t first = begin * 64;
    const int64_t count = std::min(end * 64, by_columns ? columns : rows) - first;
    for_each_run(each, 0, planes, [&](const int64_t(&at)[2]) {
      const int64_t x_at = at[0] + first * (by_columns ? 1 : x_step), y_at = at[1] + first * (by_columns ? y_step : 1);
      transpose_plane(args.in(0).as<const char>() + x_at * element_bytes, x_step,
                      args.out(0).as<char>() + y_at * element_bytes, y_step, by_columns ? rows : count,
                      by_columns ? count : columns, element_bytes);
    });
  });
}

template <typename T>
void copy_elements(const OpArgs& args, RunContext& context, const LoopNest<2>& nest) {
  const int64_t x_step = nest.run_stride(0), y_step = nest.run_stride(1);
  parallel_runs(context, nest, 1.0, [&](const int64_t(&at)[2], int64_t count) {
    const T* x = args.in(0).as<const T>() + at[0];
    T* y = args.out(0).as<T>() + at[1];
    if (x_step == 0 && y_step == 1) {
      std::fill_n(y, count, *x);
    } else {
      for (int64_t i = 0; i < count; ++i) y[i * y_step] = x[i * x_step];
    }
  });
}

// Short runs as fixed-size moves: a call of memmove costs more than the move.
template <size_t bytes>
void copy_short_runs(const OpArgs& args, RunContext& context, const LoopNest<2>& nest, int element_bytes) {
  parallel_for(context, nest.run_count(), 2.0, [&](int64_t begin, int64_t end, int) {
    for_each_run(nest, begin, end, [&](const int64_t(&at)[2]) {
      std::memmove(args.out(0).as<char>() + at[1] * element_bytes, args.in(0).as<const char>() + at[0] * element_bytes,
                   bytes);
    });
  });
}

void copy_runs(const OpArgs& args, RunContext& context, const LoopNest<2>& nest, int element_bytes) {
  switch (nest.run_length() * element_bytes) {
    case 4:
      return copy_short_runs<4>(args, context, nest, element_bytes);
    case 8:
      return copy_short_runs<8>(args, context, nest, element_bytes);
    case 16:
      return copy_short_runs<16>(args, context, nest, element_bytes);
    case 32:
      return copy_short_runs<32>(args, context, nest, element_bytes);
    case 64:
      return copy_short_runs<64>(args, context, nest, element_bytes);
    default:
      break;
  }
  parallel_runs(context, nest, 0.1 * element_bytes, [&](const int64_t(&at)[2], int64_t count) {
    std::memmove(args.out(0).as<char>() + at[1] * element_bytes, args.in(0).as<const char>() + at[0] * element_bytes,
                 static_cast<size_t>(count) * static_cast<size_t>(element_bytes));
  });
}

Status run(const OpArgs& args, RunContext& context) {
  const TensorView* const views[2] = {&args.in(0), &args.out(0)};
  const LoopNest<2> nest = collapse_by_output(views);
  const int element_bytes = dtype_bytes(args.out(0).dtype);
  const int dense = dense_input_loop(nest);
  if (nest.run_length() == 1 || (nest.run_stride(0) == 1 && nest.run_stride(1) == 1)) {
    copy_runs(args, context, nest, element_bytes);
  } else if (nest.run_stride(1) == 1 && dense >= 0) {
    copy_planes(args, context, nest, dense, element_bytes);
  } else if (element_bytes == 8) {
    copy_elements<uint64_t>(args, context, nest);
  } else if (element_bytes == 4) {
    copy_elements<uint32_t>(args, context, nest);
  } else {
    copy_elements<uint8_t>(args, context, nest);
  }
  return Status::ok();
}

}  // namespace

const OpDef kCopyOp = {Opcode::kCopy, "copy", check, nullptr, run};

}  // namespace edgekit
