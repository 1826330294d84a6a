#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check(const OpArgs& args) {
  EK_RETURN_IF_ERROR(expect_dtype("cond", args.in(0), Dtype::kBool));
  EK_RETURN_IF_ERROR(expect_same_dtype("a", args.in(1), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dtype("b", args.in(2), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("cond", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("a", args.in(1), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("b", args.in(2), "y", args.out(0)));
  return expect_writable("y", args.out(0));
}

// T: any type of the operands' width; bits are only moved.
template <typename T>
void select_elements(const OpArgs& args, RunContext& context) {
  const TensorView* const views[4] = {&args.in(0), &args.in(1), &args.in(2), &args.out(0)};
  const LoopNest<4> nest = collapse_by_output(views);
  parallel_runs(context, nest, 0.7, [&](const int64_t(&at)[4], int64_t count) {
    const uint8_t* cond = args.in(0).as<const uint8_t>() + at[0];
    const T* a = args.in(1).as<const T>() + at[1];
    const T* b = args.in(2).as<const T>() + at[2];
    T* y = args.out(0).as<T>() + at[3];
    for (int64_t i = 0; i < count; ++i) {
      const T taken = a[i * nest.run_stride(1)], other = b[i * nest.run_stride(2)];
      y[i * nest.run_stride(3)] = cond[i * nest.run_stride(0)] != 0 ? taken : other;
    }
  });
}

Status run(const OpArgs& args, RunContext& context) {
  switch (dtype_bytes(args.out(0).dtype)) {
    case 8:
      select_elements<uint64_t>(args, context);
      break;
    case 4:
      select_elements<uint32_t>(args, context);
      break;
    default:
      select_elements<uint8_t>(args, context);
      break;
  }
  return Status::ok();
}

}  // namespace

const OpDef kWhereOp = {Opcode::kWhere, "where", check, nullptr, run};

}  // namespace edgekit
