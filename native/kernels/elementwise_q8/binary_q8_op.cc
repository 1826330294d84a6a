// binary_q8: quantized add, sub, mul of operands with equal dims and any strides.
#include "kernels/elementwise_q8/elementwise_q8.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check_binary_q8(const OpArgs& args) {
  const auto& a = args.attrs<BinaryQ8Attrs>();
  const TensorView& y = args.out(0);
  EK_RETURN_IF_ERROR(expect_q8("y", y));
  EK_RETURN_IF_ERROR(expect_in_range("kind (add, sub, mul)", a.kind, 0, 2));
  for (int i = 0; i < 2; ++i) {
    const char* name = i == 0 ? "a" : "b";
    EK_RETURN_IF_ERROR(expect_same_dtype(name, args.in(i), "y", y));
    EK_RETURN_IF_ERROR(expect_same_dims(name, args.in(i), "y", y));
  }
  EK_RETURN_IF_ERROR(expect_writable("y", y));
  for (const int32_t zero : {a.a_zero, a.b_zero, a.y_zero}) {
    EK_RETURN_IF_ERROR(check_clamp_q8(y.dtype, zero, a.y_min, a.y_max));
  }
  EK_RETURN_IF_ERROR(check_scale("a_scale", a.a_scale));
  return check_scale("b_scale", a.b_scale);
}

AddQ8 binary_params(const BinaryQ8Attrs& a) {
  return {a.a_zero,
          a.b_zero,
          a.a_scale,
          a.b_scale,
          a.y_zero,
          static_cast<float>(a.y_min - a.y_zero),
          static_cast<float>(a.y_max - a.y_zero)};
}

Status run_binary_q8(const OpArgs& args, RunContext& context) {
  const auto& a = args.attrs<BinaryQ8Attrs>();
  const ElementwiseQ8Kernels& kernels = select_elementwise_q8(context.isa);
  const TensorView* const views[] = {&args.in(0), &args.in(1), &args.out(0)};
  const LoopNest<3> nest = collapse_by_output(views);
  const AddQ8 params = binary_params(a);
  parallel_runs(context, nest, kernels.element_ns, [&](const int64_t(&at)[3], int64_t count) {
    kernels.binary_row({args.in(0).as<uint8_t>() + at[0], nest.run_stride(0), args.in(1).as<uint8_t>() + at[1],
                        nest.run_stride(1), args.out(0).as<uint8_t>() + at[2], nest.run_stride(2), count,
                        static_cast<BinaryKind>(a.kind), params, args.out(0).dtype == Dtype::kS8});
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return select_elementwise_q8(isa).name; }

}  // namespace

const OpDef kBinaryQ8Op = {Opcode::kBinaryQ8, "binary_q8", check_binary_q8, nullptr,
                           run_binary_q8,     nullptr,     nullptr,         kernel};

}  // namespace edgekit
