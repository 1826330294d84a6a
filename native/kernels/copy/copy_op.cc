// y = x with any strides: moves of runs where both sides are dense, blocked transposition where each side is dense
// along another dim, and an element loop for the rest. memmove: what a hostile program overlaps is garbage, not a
// fault.
#include <cstring>

#include "kernels/copy/planes.h"
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

void copy_planes(const OpArgs& args, RunContext& context, const LoopNest<2>& nest, int element_bytes) {
  parallel_planes(context, nest, 0.1 * element_bytes, [&](const PlanePiece& p) {
    transpose_plane(args.in(0).as<const char>() + p.x_at * element_bytes, p.x_step,
                    args.out(0).as<char>() + p.y_at * element_bytes, p.y_step, p.rows, p.columns, element_bytes);
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
  if (nest.run_length() == 1 || (nest.run_stride(0) == 1 && nest.run_stride(1) == 1)) {
    copy_runs(args, context, nest, element_bytes);
  } else if (plane_loop(nest) >= 0) {
    copy_planes(args, context, nest, element_bytes);
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
