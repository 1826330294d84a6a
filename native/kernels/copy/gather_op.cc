#include <cstring>

#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

// Rank of y and, for each of its dims, the dim of data or of indices that it comes from.
Status check_dims(const OpArgs& args, int axis, bool drop) {
  const TensorView &data = args.in(0), &indices = args.in(1), &y = args.out(0);
  const int index_rank = drop ? 0 : indices.rank;
  EK_RETURN_IF_ERROR(expect_rank("y", y, data.rank - 1 + index_rank, data.rank - 1 + index_rank));
  for (int i = 0; i < y.rank; ++i) {
    int32_t expected;
    if (i < axis) {
      expected = data.dims[i];
    } else if (i < axis + index_rank) {
      expected = indices.dims[i - axis];
    } else {
      expected = data.dims[i - index_rank + 1];
    }
    if (y.dims[i] != expected)
      return invalid("gather: y has extent %d on axis %d, expected %d", y.dims[i], i, expected);
  }
  return Status::ok();
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<GatherAttrs>();
  const TensorView &data = args.in(0), &indices = args.in(1), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_same_dtype("data", data, "y", y));
  if (indices.dtype != Dtype::kI32 && indices.dtype != Dtype::kI64) {
    return invalid("indices has dtype %s, expected i32 or i64", name_of(indices.dtype));
  }
  EK_RETURN_IF_ERROR(expect_rank("data", data, 1, kMaxRank));
  EK_RETURN_IF_ERROR(expect_in_range("axis", attrs.axis, 0, data.rank - 1));
  EK_RETURN_IF_ERROR(expect_in_range("drop_index_axis", attrs.drop_index_axis, 0, 1));
  if (attrs.drop_index_axis != 0 && (indices.rank != 1 || indices.dims[0] != 1)) {
    return invalid("gather: drop_index_axis needs indices of rank 1 with one element");
  }
  EK_RETURN_IF_ERROR(check_dims(args, attrs.axis, attrs.drop_index_axis != 0));
  return expect_writable("y", y);
}

int64_t index_at(const TensorView& indices, int64_t offset) {
  return indices.dtype == Dtype::kI64 ? indices.as<const int64_t>()[offset] : indices.as<const int32_t>()[offset];
}

// The loops over the elements that one index selects, on data and y: before the axis, then after it.
LoopNest<2> slice_loops(const OpArgs& args, int axis, int index_rank) {
  const TensorView &data = args.in(0), &y = args.out(0);
  LoopNest<2> nest;
  for (int i = 0; i < data.rank; ++i) {
    if (i == axis) continue;
    const int64_t strides[2] = {data.strides[i], y.strides[i < axis ? i : i + index_rank - 1]};
    append_loop(nest, data.dims[i], strides);
  }
  return nest;
}

// The loops over the indices, on indices and y.
LoopNest<2> index_loops(const OpArgs& args, int axis, int index_rank) {
  const TensorView &indices = args.in(1), &y = args.out(0);
  LoopNest<2> nest;
  for (int i = 0; i < index_rank; ++i) {
    const int64_t strides[2] = {indices.strides[i], y.strides[axis + i]};
    append_loop(nest, indices.dims[i], strides);
  }
  return nest;
}

template <typename T>
void copy_slice(const LoopNest<2>& slice, const T* data, T* y) {
  const int64_t count = slice.run_length(), x_step = slice.run_stride(0), y_step = slice.run_stride(1);
  for_each_run(slice, 0, slice.run_count(), [&](const int64_t(&at)[2]) {
    const T* from = data + at[0];
    T* to = y + at[1];
    if (x_step == 1 && y_step == 1) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
    } else {
      for (int64_t i = 0; i < count; ++i) to[i * y_step] = from[i * x_step];
    }
  });
}

template <typename T>
Status gather(const OpArgs& args) {
  const auto& attrs = args.attrs<GatherAttrs>();
  const TensorView &data = args.in(0), &indices = args.in(1);
  const int index_rank = attrs.drop_index_axis != 0 ? 0 : indices.rank;
  const LoopNest<2> slice = slice_loops(args, attrs.axis, index_rank);
  const LoopNest<2> loops = index_loops(args, attrs.axis, index_rank);
  const int64_t extent = data.dims[attrs.axis], axis_stride = data.strides[attrs.axis];
  int64_t bad = 0;
  bool failed = false;
  for_each_run(loops, 0, loops.run_count(), [&](const int64_t(&at)[2]) {
    for (int64_t i = 0; i < loops.run_length(); ++i) {
      int64_t index = index_at(indices, at[0] + i * loops.run_stride(0));
      if (index < -extent || index >= extent) {
        bad = index;
        failed = true;
        continue;
      }
      if (index < 0) index += extent;
      copy_slice(slice, data.as<const T>() + index * axis_stride,
                 args.out(0).as<T>() + at[1] + i * loops.run_stride(1));
    }
  });
  if (!failed) return Status::ok();
  return Status(StatusCode::kRuntime,
                "gather: index " + std::to_string(bad) + " is outside an axis of " + std::to_string(extent));
}

Status run(const OpArgs& args, RunContext&) {
  switch (dtype_bytes(args.out(0).dtype)) {
    case 8:
      return gather<uint64_t>(args);
    case 4:
      return gather<uint32_t>(args);
    default:
      return gather<uint8_t>(args);
  }
}

}  // namespace

const OpDef kGatherOp = {Opcode::kGather, "gather", check, nullptr, run};

}  // namespace edgekit
