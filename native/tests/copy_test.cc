// copy, fill and gather against plain indexing.
#include "kernels/copy/transpose.h"
#include "tests/check.h"
#include "tests/op_case.h"

namespace edgekit::test {
namespace {

EK_TEST(copy_any_layout_and_dtype) {
  Random random(1);
  for (const Dtype dtype : {Dtype::kF32, Dtype::kI64, Dtype::kU8, Dtype::kS8, Dtype::kBool}) {
    for (const Dims& dims : {Dims{1}, Dims{5}, Dims{33, 47}, Dims{2, 3, 4, 5, 6, 7}, Dims{3, 64, 65}, Dims{200, 130}}) {
      const Values values = random_values(random, element_count(dims), 0, dtype == Dtype::kBool ? 1 : 120, true);
      const auto results = run_everywhere({&kCopyOp, {{dtype, dims, values}}, {{dtype, dims}}}, "copy");
      EK_CHECK(!results.empty() && results[0] == values);
    }
  }
}

EK_TEST(copy_broadcasts) {
  Random random(2);
  for (uint32_t axes = 0; axes < 8; ++axes) {
    const Dims dims = {4, 5, 70};
    Operand x = {Dtype::kF32, dims};
    x.broadcast_axes = axes;
    Dims source = dims;
    for (size_t i = 0; i < 3; ++i) source[i] = (axes >> i & 1) != 0 ? 1 : dims[i];
    x.values = random_values(random, element_count(source), -1, 1);
    const auto results = run_everywhere({&kCopyOp, {x}, {{Dtype::kF32, dims}}}, "expand");
    size_t at = 0;
    for_each_index(dims, [&](const Dims& index) {
      Dims from = index;
      for (size_t i = 0; i < 3; ++i) from[i] = source[i] == 1 ? 0 : index[i];
      EK_CHECK(results[0][at++] == x.values[static_cast<size_t>(place_of(source, from))]);
    });
  }
}

// Every permutation of memory against every other, through the strides of two dense tensors.
template <typename T>
void test_permutation(Dtype dtype, const Dims& dims, const std::vector<int>& order) {
  const int rank = static_cast<int>(dims.size());
  TensorView x, y;
  x.dtype = y.dtype = dtype;
  x.rank = y.rank = rank;
  int64_t x_extent = 1, y_extent = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const auto axis = static_cast<size_t>(order[static_cast<size_t>(i)]);
    x.dims[i] = y.dims[i] = dims[static_cast<size_t>(i)];
    x.strides[axis] = x_extent;
    x_extent *= dims[axis];
    y.strides[i] = y_extent;
    y_extent *= dims[static_cast<size_t>(i)];
  }
  GuardedBuffer from(static_cast<size_t>(x_extent) * sizeof(T)), to(static_cast<size_t>(y_extent) * sizeof(T));
  x.data = from.as<T>();
  y.data = to.as<T>();
  for (int64_t i = 0; i < x_extent; ++i) x.as<T>()[i] = static_cast<T>(i * 2654435761u);
  const TensorView *inputs[] = {&x}, *outputs[] = {&y};
  const OpArgs args = {inputs, 1, outputs, 1, nullptr};
  for (const int threads : {1, 2}) {
    std::memset(y.data, 0, static_cast<size_t>(y_extent) * sizeof(T));
    RunContext context = {ThreadPool::process(), threads, nullptr, Isa::kScalar};
    EK_CHECK(kCopyOp.check(args).is_ok() && kCopyOp.run(args, context).is_ok());
    int64_t place = 0;
    bool equal = true;
    for_each_index(dims, [&](const Dims& index) {
      int64_t offset = 0;
      for (size_t i = 0; i < dims.size(); ++i) offset += index[i] * x.strides[i];
      equal &= y.as<T>()[place++] == x.as<T>()[offset];
    });
    EK_CHECK(equal);
  }
}

EK_TEST(copy_transposes) {
  for (const Dims& dims :
       {Dims{1, 3, 33, 35}, Dims{2, 84, 70, 1}, Dims{1, 2, 100, 3}, Dims{3, 40, 2, 41}, Dims{1, 4, 31, 29}}) {
    std::vector<int> order = {0, 1, 2, 3};
    do {
      test_permutation<uint32_t>(Dtype::kF32, dims, order);
      test_permutation<uint8_t>(Dtype::kU8, dims, order);
      test_permutation<int64_t>(Dtype::kI64, dims, order);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

EK_TEST(transpose_plane_every_size) {
  for (int rows = 1; rows <= 19; ++rows) {
    for (int columns = 1; columns <= 19; ++columns) {
      GuardedBuffer x(static_cast<size_t>(rows * columns)), y(static_cast<size_t>(rows * columns));
      for (int i = 0; i < rows * columns; ++i) x.as<uint8_t>()[i] = static_cast<uint8_t>(i);
      transpose_plane(x.as<uint8_t>(), columns, y.as<uint8_t>(), rows, rows, columns, 1);
      bool equal = true;
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j) equal &= y.as<uint8_t>()[j * rows + i] == x.as<uint8_t>()[i * columns + j];
      }
      EK_CHECK(equal);
    }
  }
}

EK_TEST(copy_refuses) {
  EK_CHECK(!check_of({&kCopyOp, {{Dtype::kF32, {2, 3}}}, {{Dtype::kF32, {3, 2}}}}).is_ok());
  EK_CHECK(!check_of({&kCopyOp, {{Dtype::kF32, {2, 3}}}, {{Dtype::kI32, {2, 3}}}}).is_ok());
  EK_CHECK(!check_of({&kCopyOp, {{Dtype::kF32, {6}}}, {{Dtype::kF32, {2, 3}}}}).is_ok());
}

EK_TEST(fill_patterns) {
  const auto filled = [](Dtype dtype, int32_t bits) {
    OpCase op_case = {&kFillOp, {}, {{dtype, {3, 70}}}};
    return run_everywhere(op_case.with(FillAttrs{bits}), "fill")[0];
  };
  EK_CHECK(filled(Dtype::kF32, 0x3fc00000) == Values(210, 1.5));
  EK_CHECK(filled(Dtype::kI32, -7) == Values(210, -7));
  EK_CHECK(filled(Dtype::kI64, -7) == Values(210, -7));
  EK_CHECK(filled(Dtype::kU8, 200) == Values(210, 200));
  EK_CHECK(filled(Dtype::kS8, -3) == Values(210, -3));
  EK_CHECK(filled(Dtype::kBool, 1) == Values(210, 1));
  OpCase bad = {&kFillOp, {}, {{Dtype::kBool, {1}}}};
  EK_CHECK(!check_of(bad.with(FillAttrs{2})).is_ok());
}

void test_gather(Dtype dtype, const Dims& data_dims, int axis, const Dims& index_dims, Dtype index_dtype) {
  Random random(4);
  const int32_t extent = data_dims[static_cast<size_t>(axis)];
  const Operand data = {dtype, data_dims, random_values(random, element_count(data_dims), 0, 100, true)};
  const Operand indices = {index_dtype, index_dims,
                           random_values(random, element_count(index_dims), -extent, extent - 1, true)};
  Dims y_dims(data_dims.begin(), data_dims.begin() + axis);
  y_dims.insert(y_dims.end(), index_dims.begin(), index_dims.end());
  y_dims.insert(y_dims.end(), data_dims.begin() + axis + 1, data_dims.end());
  OpCase op_case = {&kGatherOp, {data, indices}, {{dtype, y_dims}}};
  const auto results = run_everywhere(op_case.with(GatherAttrs{axis, 0}), "gather");
  if (results.empty()) return;
  size_t at = 0;
  for_each_index(y_dims, [&](const Dims& index) {
    const Dims inner(index.begin() + axis, index.begin() + axis + static_cast<int>(index_dims.size()));
    double picked = indices.values[static_cast<size_t>(place_of(index_dims, inner))];
    if (picked < 0) picked += extent;
    Dims source(index.begin(), index.begin() + axis);
    source.push_back(static_cast<int32_t>(picked));
    source.insert(source.end(), index.begin() + axis + static_cast<int>(index_dims.size()), index.end());
    EK_CHECK(results[0][at++] == data.values[static_cast<size_t>(place_of(data_dims, source))]);
  });
}

EK_TEST(gather_takes) {
  test_gather(Dtype::kF32, {5, 7}, 0, {3}, Dtype::kI64);
  test_gather(Dtype::kF32, {5, 7}, 1, {2, 4}, Dtype::kI32);
  test_gather(Dtype::kU8, {3, 4, 5}, 1, {6}, Dtype::kI64);
  test_gather(Dtype::kI64, {3, 4, 5}, 2, {2, 2}, Dtype::kI64);
  test_gather(Dtype::kF32, {9}, 0, {1}, Dtype::kI32);
}

EK_TEST(gather_drops_axis_and_refuses) {
  OpCase op_case = {
      &kGatherOp, {{Dtype::kF32, {3, 4}, Values(12, 1.0)}, {Dtype::kI64, {1}, {-1}}}, {{Dtype::kF32, {4}}}};
  for (size_t i = 0; i < 12; ++i) op_case.inputs[0].values[i] = static_cast<double>(i);
  EK_CHECK(run_everywhere(op_case.with(GatherAttrs{0, 1}), "gather")[0] == Values({8, 9, 10, 11}));
  EK_CHECK(!check_of(op_case.with(GatherAttrs{0, 0})).is_ok());
  EK_CHECK(!check_of(op_case.with(GatherAttrs{2, 1})).is_ok());
  EK_CHECK(!check_of(op_case.with(GatherAttrs{-1, 1})).is_ok());
  op_case.inputs[1].values = {3};
  EK_CHECK(run_once(op_case.with(GatherAttrs{0, 1})).code() == StatusCode::kRuntime);
  op_case.inputs[1].values = {-4};
  EK_CHECK(run_once(op_case.with(GatherAttrs{0, 1})).code() == StatusCode::kRuntime);
}

}  // namespace
}  // namespace edgekit::test
