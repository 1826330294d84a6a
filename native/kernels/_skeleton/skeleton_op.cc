// The op: checks hostile operands once, then shares rows among threads. A real op has its own row in
// edgekit/package/program_schema.toml, which gives it its opcode and its attributes, and a line in kernels/ops.inc,
// which declares it; the skeleton borrows an opcode and stays out of ops.inc.
#include "kernels/_skeleton/skeleton.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check_skeleton(const OpArgs& args) {
  const TensorView& y = args.out(0);
  for (int i = 0; i < 2; ++i) {
    const char* name = i == 0 ? "a" : "b";
    EK_RETURN_IF_ERROR(expect_dtype(name, args.in(i), Dtype::kU8));
    EK_RETURN_IF_ERROR(expect_same_dims(name, args.in(i), "y", y));
    if (!args.in(i).is_dense()) return invalid("%s is not dense", name);
  }
  if (!y.is_dense()) return invalid("y is not dense");
  return expect_dtype("y", y, Dtype::kU8);
}

Status run_skeleton(const OpArgs& args, RunContext& context) {
  const SkeletonKernel& kernel = select_skeleton(context.isa);
  const TensorView* const views[] = {&args.in(0), &args.in(1), &args.out(0)};
  parallel_runs(context, collapse(views), kernel.element_ns, [&](const int64_t(&at)[3], int64_t n) {
    kernel.add_row(
        {args.in(0).as<uint8_t>() + at[0], args.in(1).as<uint8_t>() + at[1], args.out(0).as<uint8_t>() + at[2], n});
  });
  return Status::ok();
}

}  // namespace

extern const OpDef kSkeletonOp;
const OpDef kSkeletonOp = {Opcode::kBinary, "skeleton", check_skeleton, nullptr, run_skeleton};

}  // namespace edgekit
