// lut_q8: y = lut[x] on any strides.
#include "kernels/elementwise_q8/elementwise_q8.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check_lut_q8(const OpArgs& args) {
  EK_RETURN_IF_ERROR(expect_q8("x", args.in(0)));
  EK_RETURN_IF_ERROR(expect_q8("y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_same_dims("x", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_writable("y", args.out(0)));
  return expect_vector("lut", args.in(1), args.out(0).dtype, 256);
}

Status run_lut_q8(const OpArgs& args, RunContext& context) {
  const ElementwiseQ8Kernels& kernels = select_elementwise_q8(context.isa);
  const TensorView* const views[] = {&args.in(0), &args.out(0)};
  const LoopNest<2> nest = collapse_by_output(views);
  parallel_runs(context, nest, kernels.element_ns, [&](const int64_t(&at)[2], int64_t count) {
    kernels.lut_row({args.in(0).as<uint8_t>() + at[0], nest.run_stride(0), args.out(0).as<uint8_t>() + at[1],
                     nest.run_stride(1), count, args.in(1).as<uint8_t>(), args.in(0).dtype == Dtype::kS8});
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return select_elementwise_q8(isa).name; }

}  // namespace

const OpDef kLutQ8Op = {Opcode::kLutQ8, "lut_q8", check_lut_q8, nullptr, run_lut_q8, nullptr, nullptr, kernel};

}  // namespace edgekit
