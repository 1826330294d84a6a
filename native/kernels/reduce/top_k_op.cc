#include <algorithm>
#include <type_traits>

#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<TopKAttrs>();
  const TensorView &x = args.in(0), &values = args.out(0), &indices = args.out(1);
  if (x.dtype == Dtype::kBool) return invalid("top_k on bool");
  EK_RETURN_IF_ERROR(expect_same_dtype("x", x, "values", values));
  EK_RETURN_IF_ERROR(expect_dtype("indices", indices, Dtype::kI64));
  EK_RETURN_IF_ERROR(expect_rank("x", x, 1, kMaxRank));
  EK_RETURN_IF_ERROR(expect_in_range("axis", attrs.axis, 0, x.rank - 1));
  EK_RETURN_IF_ERROR(expect_in_range("k", attrs.k, 1, x.dims[attrs.axis]));
  EK_RETURN_IF_ERROR(expect_in_range("largest", attrs.largest, 0, 1));
  EK_RETURN_IF_ERROR(expect_same_dims("values", values, "indices", indices));
  EK_RETURN_IF_ERROR(expect_rank("values", values, x.rank, x.rank));
  for (int i = 0; i < x.rank; ++i) {
    const int32_t expected = i == attrs.axis ? attrs.k : x.dims[i];
    if (values.dims[i] != expected) {
      return invalid("top_k: values has extent %d on axis %d, expected %d", values.dims[i], i, expected);
    }
  }
  EK_RETURN_IF_ERROR(expect_writable("values", values));
  return expect_writable("indices", indices);
}

// Indices along the axis, for each worker.
size_t worker_bytes(const OpArgs& args) {
  const size_t bytes = static_cast<size_t>(args.in(0).dims[args.attrs<TopKAttrs>().axis]) * sizeof(int32_t);
  return (bytes + 63) / 64 * 64;
}

size_t scratch_bytes(const OpArgs& args, int threads, Isa) { return worker_bytes(args) * static_cast<size_t>(threads); }

// A strict order on all values: NaN, which compares with nothing, counts as the greatest.
template <typename T>
bool above(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return b == b;
  }
  return a > b;
}

template <typename T>
void pick_line(const TopKAttrs& attrs, const TensorView& x, int64_t x_at, int32_t* order) {
  const T* from = x.as<const T>() + x_at;
  const int64_t stride = x.strides[attrs.axis];
  const int32_t extent = x.dims[attrs.axis];
  for (int32_t i = 0; i < extent; ++i) order[i] = i;
  const bool largest = attrs.largest != 0;
  std::partial_sort(order, order + attrs.k, order + extent, [=](int32_t i, int32_t j) {
    const T a = from[i * stride], b = from[j * stride];
    if (largest ? above(a, b) : above(b, a)) return true;
    if (largest ? above(b, a) : above(a, b)) return false;
    return i < j;
  });
}

template <typename T>
void pick(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<TopKAttrs>();
  const TensorView &x = args.in(0), &values = args.out(0), &indices = args.out(1);
  LoopNest<3> lines;
  for (int i = 0; i < x.rank; ++i) {
    const int64_t strides[3] = {x.strides[i], values.strides[i], indices.strides[i]};
    if (i != attrs.axis) append_loop(lines, x.dims[i], strides);
  }
  const int64_t length = lines.run_length(), stride = x.strides[attrs.axis];
  const double line_ns = 5.0 * x.dims[attrs.axis];
  // The loops as a list of single lines, so that any number of threads can share them.
  parallel_for(context, lines.run_count() * length, line_ns, [&](int64_t begin, int64_t end, int worker) {
    int32_t* order = reinterpret_cast<int32_t*>(context.scratch + worker_bytes(args) * static_cast<size_t>(worker));
    for_each_run(
        lines, begin / length, (end + length - 1) / length, [&, run = begin / length](const int64_t(&at)[3]) mutable {
          const int64_t first = std::max<int64_t>(begin - run * length, 0), last = std::min(end - run * length, length);
          ++run;
          for (int64_t line = first; line < last; ++line) {
            const int64_t x_at = at[0] + line * lines.run_stride(0);
            pick_line<T>(attrs, x, x_at, order);
            for (int32_t i = 0; i < attrs.k; ++i) {
              values.as<T>()[at[1] + line * lines.run_stride(1) + i * values.strides[attrs.axis]] =
                  x.as<const T>()[x_at + order[i] * stride];
              indices.as<int64_t>()[at[2] + line * lines.run_stride(2) + i * indices.strides[attrs.axis]] = order[i];
            }
          }
        });
  });
}

Status run(const OpArgs& args, RunContext& context) {
  switch (args.in(0).dtype) {
    case Dtype::kF32:
      pick<float>(args, context);
      break;
    case Dtype::kI32:
      pick<int32_t>(args, context);
      break;
    case Dtype::kI64:
      pick<int64_t>(args, context);
      break;
    case Dtype::kU8:
      pick<uint8_t>(args, context);
      break;
    default:
      pick<int8_t>(args, context);
  }
  return Status::ok();
}

}  // namespace

const OpDef kTopKOp = {Opcode::kTopK, "top_k", check, scratch_bytes, run};

}  // namespace edgekit
