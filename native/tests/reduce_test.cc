// reduce, arg_reduce, top_k, softmax and layer_norm against plain loops in double precision.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/check.h"
#include "tests/op_case.h"

namespace edgekit::test {
namespace {

// The elements of x that are reduced into each element of y, in order. y has 1 on the masked axes.
std::vector<Values> grouped(const Operand& x, uint32_t mask, Dims& y_dims) {
  y_dims = x.dims;
  for (size_t i = 0; i < y_dims.size(); ++i) {
    if ((mask >> i & 1) != 0) y_dims[i] = 1;
  }
  std::vector<Values> groups(static_cast<size_t>(element_count(y_dims)));
  size_t at = 0;
  for_each_index(x.dims, [&](const Dims& index) {
    Dims to = index;
    for (size_t i = 0; i < to.size(); ++i) to[i] = y_dims[i] == 1 ? 0 : index[i];
    groups[static_cast<size_t>(place_of(y_dims, to))].push_back(x.values[at++]);
  });
  return groups;
}

double exact_reduce(ReduceKind kind, const Values& values, bool whole) {
  double sum = 0, product = 1, magnitudes = 0, squares = 0, exponentials = 0;
  for (const double v : values) {
    sum += v, product *= v, magnitudes += std::fabs(v), squares += v * v, exponentials += std::exp(v);
  }
  const auto count = static_cast<double>(values.size());
  switch (kind) {
    case ReduceKind::kMean:
      return whole ? std::trunc(sum / count) : sum / count;
    case ReduceKind::kMax:
      return *std::max_element(values.begin(), values.end());
    case ReduceKind::kMin:
      return *std::min_element(values.begin(), values.end());
    case ReduceKind::kSum:
      return sum;
    case ReduceKind::kProd:
      return product;
    case ReduceKind::kL1:
      return magnitudes;
    case ReduceKind::kL2:
      return std::sqrt(squares);
    case ReduceKind::kSumSquare:
      return squares;
    case ReduceKind::kLogSum:
      return std::log(sum);
    case ReduceKind::kLogSumExp:
      return std::log(exponentials);
  }
  return 0;
}

void test_reduce(ReduceKind kind, Dtype dtype, const Dims& dims, uint32_t mask) {
  Random random(31);
  Operand x = {dtype, dims};
  const bool is_float = dtype == Dtype::kF32;
  const double low = dtype == Dtype::kU8           ? 0
                     : dtype == Dtype::kS8         ? -128
                     : kind == ReduceKind::kLogSum ? 0.1
                     : kind == ReduceKind::kProd   ? 0.9
                                                   : -3;
  const double high = dtype == Dtype::kU8 ? 255 : dtype == Dtype::kS8 ? 127 : kind == ReduceKind::kProd ? 1.1 : 3;
  x.values = random_values(random, element_count(dims), is_float ? low : std::floor(low),
                           is_float ? high : std::ceil(high), !is_float);
  Dims y_dims;
  const std::vector<Values> groups = grouped(x, mask, y_dims);
  const ReduceAttrs attrs = {static_cast<int32_t>(kind), static_cast<int32_t>(mask), dtype == Dtype::kU8 ? 7 : 0,
                             dtype == Dtype::kU8 ? 99 : -3, 0.77f};
  OpCase op_case = {&kReduceOp, {x}, {{dtype, y_dims}}};
  const std::string label =
      std::string("reduce ") + name_of(kind) + " " + name_of(dtype) + " mask " + std::to_string(mask);
  const auto results = run_everywhere(op_case.with(attrs), label);
  if (results.empty()) return;
  const bool byte_mean = kind == ReduceKind::kMean && (dtype == Dtype::kU8 || dtype == Dtype::kS8);
  Values expected;
  for (const Values& values : groups) {
    if (byte_mean) {
      const double sum =
          std::accumulate(values.begin(), values.end(), 0.0) - attrs.x_zero * static_cast<double>(values.size());
      const float v = static_cast<float>(sum) / static_cast<float>(values.size()) * attrs.ratio;
      const double rounded = std::nearbyint(static_cast<double>(v)) + attrs.y_zero;
      expected.push_back(
          std::min(std::max(rounded, dtype == Dtype::kU8 ? 0.0 : -128.0), dtype == Dtype::kU8 ? 255.0 : 127.0));
    } else {
      expected.push_back(exact_reduce(kind, values, !is_float));
    }
  }
  expect_near(results[0], expected, is_float ? 1e-6 : 0, is_float ? 1e-6 : 0, label);
}

EK_TEST(reduce_kinds_and_axes) {
  for (int k = 0; k < kReduceKindCount; ++k) {
    const auto kind = static_cast<ReduceKind>(k);
    for (uint32_t mask = 0; mask < 16; ++mask) test_reduce(kind, Dtype::kF32, {2, 3, 4, 70}, mask);
    const bool extreme = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
    for (const Dtype dtype : {Dtype::kI32, Dtype::kI64}) {
      if (k <= static_cast<int>(ReduceKind::kProd)) test_reduce(kind, dtype, {3, 5, 6}, 0b010);
    }
    for (const Dtype dtype : {Dtype::kU8, Dtype::kS8}) {
      if (!extreme && kind != ReduceKind::kMean) continue;
      for (uint32_t mask = 0; mask < 16; ++mask) test_reduce(kind, dtype, {2, 5, 4, 33}, mask);
    }
  }
  test_reduce(ReduceKind::kSum, Dtype::kF32, {1, 30, 30, 200}, 0b0110);
}

EK_TEST(reduce_extremes_of_logs) {
  OpCase op_case = {&kReduceOp, {{Dtype::kF32, {2, 2}, {1000, 1000, -1000, -1001}}}, {{Dtype::kF32, {2, 1}}}};
  const auto results =
      run_everywhere(op_case.with(ReduceAttrs{static_cast<int32_t>(ReduceKind::kLogSumExp), 2, 0, 0, 1}), "logsumexp");
  expect_near(results[0], {1000 + std::log(2.0), -1000 + std::log1p(std::exp(-1.0))}, 1e-7, 0, "logsumexp");
}

EK_TEST(reduce_refuses) {
  const auto refused = [](Dtype dtype, Dims y, ReduceAttrs attrs) {
    OpCase op_case = {&kReduceOp, {{dtype, {2, 3}}}, {{dtype, std::move(y)}}};
    EK_CHECK(!check_of(op_case.with(attrs)).is_ok());
  };
  refused(Dtype::kF32, {2, 3}, {0, 2, 0, 0, 1});
  refused(Dtype::kF32, {2}, {0, 2, 0, 0, 1});
  refused(Dtype::kF32, {2, 1}, {10, 2, 0, 0, 1});
  refused(Dtype::kF32, {2, 1}, {0, 6, 0, 0, 1});
  refused(Dtype::kF32, {2, 1}, {0, -1, 0, 0, 1});
  refused(Dtype::kU8, {2, 1}, {3, 2, 0, 0, 1});
  refused(Dtype::kU8, {2, 1}, {0, 2, 300, 0, 1});
  refused(Dtype::kBool, {2, 1}, {1, 2, 0, 0, 1});
  refused(Dtype::kI32, {2, 1}, {6, 2, 0, 0, 1});
}

void test_arg(Dtype dtype, const Dims& dims, int axis, bool least, bool last) {
  Random random(32);
  const Operand x = {dtype, dims, random_values(random, element_count(dims), 0, 9, true)};
  Dims y_dims;
  const std::vector<Values> groups = grouped(x, 1u << axis, y_dims);
  OpCase op_case = {&kArgReduceOp, {x}, {{Dtype::kI64, y_dims}}};
  const auto results = run_everywhere(op_case.with(ArgReduceAttrs{axis, least, last}), "arg_reduce");
  if (results.empty()) return;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Values& v = groups[i];
    size_t best = 0;
    for (size_t j = 1; j < v.size(); ++j) {
      if (least ? v[j] < v[best] : v[j] > v[best]) best = j;
      if (last && v[j] == v[best]) best = j;
    }
    EK_CHECK(results[0][i] == static_cast<double>(best));
  }
}

EK_TEST(arg_reduce_picks) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kI32, Dtype::kI64, Dtype::kU8, Dtype::kS8}) {
    for (int axis = 0; axis < 3; ++axis) {
      for (int flags = 0; flags < 4; ++flags) test_arg(dtype, {3, 20, 70}, axis, (flags & 1) != 0, (flags & 2) != 0);
    }
  }
  OpCase bad = {&kArgReduceOp, {{Dtype::kF32, {2, 3}}}, {{Dtype::kI64, {2, 1}}}};
  for (const int32_t axis : {-1, 0, 2, INT32_MAX}) EK_CHECK(!check_of(bad.with(ArgReduceAttrs{axis, 0, 0})).is_ok());
}

void test_top_k(Dtype dtype, const Dims& dims, int axis, int32_t k, bool largest) {
  Random random(33);
  const Operand x = {dtype, dims, random_values(random, element_count(dims), 0, 20, true)};
  Dims y_dims;
  const std::vector<Values> groups = grouped(x, 1u << axis, y_dims);
  Dims out_dims = dims;
  out_dims[static_cast<size_t>(axis)] = k;
  OpCase op_case = {&kTopKOp, {x}, {{dtype, out_dims}, {Dtype::kI64, out_dims}}};
  const auto results = run_everywhere(op_case.with(TopKAttrs{axis, k, largest}), "top_k");
  if (results.empty()) return;
  size_t at = 0;
  for_each_index(out_dims, [&](const Dims& index) {
    Dims group = index;
    group[static_cast<size_t>(axis)] = 0;
    const Values& v = groups[static_cast<size_t>(place_of(y_dims, group))];
    std::vector<size_t> order(v.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t i, size_t j) { return largest ? v[i] > v[j] : v[i] < v[j]; });
    const size_t picked = order[static_cast<size_t>(index[static_cast<size_t>(axis)])];
    EK_CHECK(results[0][at] == v[picked] && results[1][at] == static_cast<double>(picked));
    ++at;
  });
}

EK_TEST(top_k_sorts) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kI32, Dtype::kI64, Dtype::kU8, Dtype::kS8}) {
    for (int axis = 0; axis < 3; ++axis) {
      test_top_k(dtype, {5, 6, 9}, axis, 3, true);
      test_top_k(dtype, {5, 6, 9}, axis, 5, false);
    }
  }
  test_top_k(Dtype::kF32, {3000}, 0, 100, true);
  test_top_k(Dtype::kF32, {40, 300}, 1, 300, true);
  OpCase bad = {&kTopKOp, {{Dtype::kF32, {4}}}, {{Dtype::kF32, {5}}, {Dtype::kI64, {5}}}};
  EK_CHECK(!check_of(bad.with(TopKAttrs{0, 5, 1})).is_ok());
  EK_CHECK(!check_of(bad.with(TopKAttrs{0, 0, 1})).is_ok());
  EK_CHECK(!check_of(bad.with(TopKAttrs{1, 5, 1})).is_ok());
}

EK_TEST(top_k_orders_nan) {
  OpCase op_case = {&kTopKOp, {{Dtype::kF32, {5}, {1, NAN, 3, NAN, 2}}}, {{Dtype::kF32, {3}}, {Dtype::kI64, {3}}}};
  EK_CHECK(run_everywhere(op_case.with(TopKAttrs{0, 3, 1}), "nan")[1] == Values({1, 3, 2}));
  EK_CHECK(run_everywhere(op_case.with(TopKAttrs{0, 3, 0}), "nan")[1] == Values({0, 4, 2}));
}

void test_softmax(const Dims& dims, int axis, bool log) {
  Random random(34);
  const Operand x = {Dtype::kF32, dims, random_values(random, element_count(dims), -8, 8)};
  Dims y_dims;
  const std::vector<Values> groups = grouped(x, 1u << axis, y_dims);
  OpCase op_case = {&kSoftmaxOp, {x}, {{Dtype::kF32, dims}}};
  const auto results = run_everywhere(op_case.with(SoftmaxAttrs{axis, log}), "softmax");
  if (results.empty()) return;
  Values expected;
  size_t at = 0;
  for_each_index(dims, [&](const Dims& index) {
    Dims group = index;
    group[static_cast<size_t>(axis)] = 0;
    const Values& v = groups[static_cast<size_t>(place_of(y_dims, group))];
    const double log_sum = exact_reduce(ReduceKind::kLogSumExp, v, false);
    expected.push_back(log ? x.values[at] - log_sum : std::exp(x.values[at] - log_sum));
    ++at;
  });
  expect_near(results[0], expected, 2e-6, log ? 2e-6 : 1e-9, "softmax");
}

EK_TEST(softmax_axes) {
  for (const bool log : {false, true}) {
    for (int axis = 0; axis < 3; ++axis) {
      test_softmax({3, 5, 7}, axis, log);
      test_softmax({2, 16, 70}, axis, log);
      test_softmax({1, 300, 4}, axis, log);
      test_softmax({9, 1, 33}, axis, log);
    }
    test_softmax({1000}, 0, log);
    test_softmax({1, 80, 4, 16}, 3, log);
    test_softmax({1, 4, 16, 200}, 2, log);
  }
  OpCase bad = {&kSoftmaxOp, {{Dtype::kF32, {2, 3}}}, {{Dtype::kF32, {2, 3}}}};
  for (const int32_t axis : {-1, 2, INT32_MAX, INT32_MIN}) EK_CHECK(!check_of(bad.with(SoftmaxAttrs{axis, 0})).is_ok());
}

EK_TEST(softmax_of_huge_values) {
  OpCase op_case = {&kSoftmaxOp, {{Dtype::kF32, {2, 3}, {1e30, 1e30, -1e30, -3e38, 0, 3e38}}}, {{Dtype::kF32, {2, 3}}}};
  EK_CHECK(run_everywhere(op_case.with(SoftmaxAttrs{1, 0}), "huge")[0] == Values({0.5, 0.5, 0, 0, 0, 1}));
}

void test_layer_norm(const Dims& dims, int axes, bool rms, bool parameters) {
  Random random(35);
  const Operand x = {Dtype::kF32, dims, random_values(random, element_count(dims), -3, 5)};
  const Dims inner(dims.end() - axes, dims.end());
  const auto length = static_cast<size_t>(element_count(inner));
  Operand gamma = {Dtype::kF32, inner, random_values(random, element_count(inner), 0.5, 2)};
  Operand beta = {Dtype::kF32, inner, random_values(random, element_count(inner), -1, 1)};
  gamma.fixed = beta.fixed = true;
  gamma.absent = !parameters;
  beta.absent = !parameters || rms;
  OpCase op_case = {&kLayerNormOp, {x, gamma, beta}, {{Dtype::kF32, dims}}};
  const auto results = run_everywhere(op_case.with(LayerNormAttrs{axes, 1e-5f, rms}), "layer_norm");
  if (results.empty()) return;
  Values expected(x.values.size());
  for (size_t line = 0; line < x.values.size(); line += length) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < length; ++i) mean += x.values[line + i] / static_cast<double>(length);
    if (rms) mean = 0;
    for (size_t i = 0; i < length; ++i) squares += (x.values[line + i] - mean) * (x.values[line + i] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(length) + 1e-5);
    for (size_t i = 0; i < length; ++i) {
      const double scaled = (x.values[line + i] - mean) / deviation * (gamma.absent ? 1.0 : gamma.values[i]);
      expected[line + i] = scaled + (beta.absent ? 0.0 : beta.values[i]);
    }
  }
  expect_near(results[0], expected, 1e-5, 3e-6, "layer_norm");
}

EK_TEST(layer_norm_lines) {
  for (const bool rms : {false, true}) {
    for (const bool parameters : {false, true}) {
      for (const int32_t length : {2, 15, 16, 17, 64, 100}) test_layer_norm({3, 5, length}, 1, rms, parameters);
      test_layer_norm({2, 6, 7}, 2, rms, parameters);
      test_layer_norm({50}, 1, rms, parameters);
    }
  }
  OpCase bad = {&kLayerNormOp, {{Dtype::kF32, {2, 3}}}, {{Dtype::kF32, {2, 3}}}};
  for (const int32_t axes : {0, 3, -1, INT32_MAX})
    EK_CHECK(!check_of(bad.with(LayerNormAttrs{axes, 1e-5f, 0})).is_ok());
}

}  // namespace
}  // namespace edgekit::test
