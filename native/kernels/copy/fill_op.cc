#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<FillAttrs>();
  if (args.out(0).dtype == Dtype::kBool)
    EK_RETURN_IF_ERROR(expect_in_range("bits_low of a bool", attrs.bits_low, 0, 1));
  return expect_writable("y", args.out(0));
}

template <typename T>
void fill(const OpArgs& args, RunContext& context, T value) {
  const TensorView* const views[1] = {&args.out(0)};
  const LoopNest<1> nest = collapse_by_output(views);
  const int64_t step = nest.run_stride(0);
  parallel_runs(context, nest, 0.1, [&](const int64_t(&at)[1], int64_t count) {
    T* y = args.out(0).as<T>() + at[0];
    if (step == 1) {
      std::fill_n(y, count, value);
    } else {
      for (int64_t i = 0; i < count; ++i) y[i * step] = value;
    }
  });
}

Status run(const OpArgs& args, RunContext& context) {
  const int32_t bits = args.attrs<FillAttrs>().bits_low;
  switch (dtype_bytes(args.out(0).dtype)) {
    case 8:
      fill<int64_t>(args, context, bits);
      break;
    case 4:
      fill<int32_t>(args, context, bits);
      break;
    default:
      fill<uint8_t>(args, context, static_cast<uint8_t>(bits));
      break;
  }
  return Status::ok();
}

}  // namespace

const OpDef kFillOp = {Opcode::kFill, "fill", check, nullptr, run};

}  // namespace edgekit
