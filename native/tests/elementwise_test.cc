// binary, unary and where against plain loops, on every dtype, with broadcasting.
#include <cmath>

#include "tests/check.h"
#include "tests/op_case.h"

namespace edgekit::test {
namespace {

// Values of an operand seen through its broadcast axes.
double seen(const Operand& operand, const Dims& index) {
  Dims dims = operand.dims, at = index;
  for (size_t i = 0; i < dims.size(); ++i) {
    if ((operand.broadcast_axes >> i & 1) != 0) dims[i] = 1, at[i] = 0;
  }
  return operand.values[static_cast<size_t>(place_of(dims, at))];
}

Operand random_operand(Random& random, Dtype dtype, const Dims& dims, uint32_t broadcast_axes, double low,
                       double high) {
  Operand operand = {dtype, dims};
  operand.broadcast_axes = broadcast_axes;
  int64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) count *= (broadcast_axes >> i & 1) != 0 ? 1 : dims[i];
  operand.values = random_values(random, count, low, high, dtype != Dtype::kF32);
  return operand;
}

double python_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double exact_binary(BinaryKind kind, double a, double b, bool is_float) {
  switch (kind) {
    case BinaryKind::kAdd:
      return a + b;
    case BinaryKind::kSub:
      return a - b;
    case BinaryKind::kMul:
      return a * b;
    case BinaryKind::kDiv:
      return is_float ? a / b : b == 0 ? 0 : std::trunc(a / b);
    case BinaryKind::kPow:
      return is_float ? std::pow(a, b) : std::trunc(std::pow(a, b));
    case BinaryKind::kMin:
      return std::min(a, b);
    case BinaryKind::kMax:
      return std::max(a, b);
    case BinaryKind::kPrelu:
      return a < 0 ? a * b : a;
    case BinaryKind::kEqual:
      return a == b;
    case BinaryKind::kLess:
      return a < b;
    case BinaryKind::kGreater:
      return a > b;
    case BinaryKind::kLessEqual:
      return a <= b;
    case BinaryKind::kGreaterEqual:
      return a >= b;
    case BinaryKind::kLogicalAnd:
      return a != 0 && b != 0;
    case BinaryKind::kLogicalOr:
      return a != 0 || b != 0;
    case BinaryKind::kLogicalXor:
      return (a != 0) != (b != 0);
    case BinaryKind::kMod:
      return is_float || b != 0 ? python_mod(a, b) : 0;
    case BinaryKind::kFmod:
      return is_float || b != 0 ? std::fmod(a, b) : 0;
  }
  return 0;
}

bool is_comparison(BinaryKind kind) { return kind >= BinaryKind::kEqual && kind <= BinaryKind::kGreaterEqual; }
bool is_logical(BinaryKind kind) { return kind >= BinaryKind::kLogicalAnd && kind <= BinaryKind::kLogicalXor; }

// Wraps an exact integer result as the dtype does.
double wrapped(Dtype dtype, double value) {
  const auto whole = static_cast<int64_t>(value);
  switch (dtype) {
    case Dtype::kU8:
      return static_cast<uint8_t>(whole);
    case Dtype::kS8:
      return static_cast<int8_t>(whole);
    case Dtype::kI32:
      return static_cast<int32_t>(whole);
    default:
      return value;
  }
}

void test_binary(BinaryKind kind, Dtype dtype, const Dims& dims, uint32_t broadcast_a, uint32_t broadcast_b) {
  Random random(static_cast<uint64_t>(kind) * 7 + static_cast<uint64_t>(dtype) + broadcast_b);
  double low = dtype == Dtype::kF32 ? -4.0 : -9.0, high = dtype == Dtype::kF32 ? 4.0 : 9.0;
  if (dtype == Dtype::kU8) low = 0, high = 255;
  if (dtype == Dtype::kS8) low = -128, high = 127;
  if (dtype == Dtype::kBool) low = 0, high = 1;
  Operand a = random_operand(random, dtype, dims, broadcast_a, low, high);
  Operand b = random_operand(random, dtype, dims, broadcast_b, low, high);
  if (kind == BinaryKind::kPow) {
    for (double& value : a.values) value = std::fabs(value);
    for (double& value : b.values) value = dtype == Dtype::kF32 ? value : std::fabs(std::fmod(value, 3.0));
  }
  const Dtype result = is_comparison(kind) || is_logical(kind) ? Dtype::kBool : dtype;
  OpCase op_case = {&kBinaryOp, {a, b}, {{result, dims}}};
  op_case.with(BinaryAttrs{static_cast<int32_t>(kind), 0, 0, 0});
  const std::string label = std::string("binary ") + name_of(kind) + " " + name_of(dtype);
  const std::vector<Values> results = run_everywhere(op_case, label);
  if (results.empty()) return;
  Values expected;
  for_each_index(dims, [&](const Dims& index) {
    const double value = exact_binary(kind, seen(a, index), seen(b, index), dtype == Dtype::kF32);
    expected.push_back(dtype == Dtype::kF32 ? value : wrapped(result == Dtype::kBool ? Dtype::kI64 : dtype, value));
  });
  expect_near(results[0], expected, dtype == Dtype::kF32 ? 2e-7 : 0.0, 1e-30, label);
}

EK_TEST(binary_kinds_and_dtypes) {
  for (int k = 0; k < kBinaryKindCount; ++k) {
    const auto kind = static_cast<BinaryKind>(k);
    for (const Dtype dtype : {Dtype::kF32, Dtype::kI32, Dtype::kI64, Dtype::kU8, Dtype::kS8, Dtype::kBool}) {
      const bool boolean = dtype == Dtype::kBool, byte = dtype == Dtype::kU8 || dtype == Dtype::kS8;
      if (boolean ? !is_logical(kind) && kind != BinaryKind::kEqual : is_logical(kind)) continue;
      if (byte && is_comparison(kind)) continue;
      test_binary(kind, dtype, {2, 3, 37}, 0, 0);
      test_binary(kind, dtype, {2, 3, 37}, 0, 0b011);
    }
  }
}

EK_TEST(binary_broadcasts) {
  for (uint32_t axes_a = 0; axes_a < 8; ++axes_a) {
    for (uint32_t axes_b = 0; axes_b < 8; ++axes_b)
      test_binary(BinaryKind::kSub, Dtype::kF32, {3, 4, 19}, axes_a, axes_b);
  }
  test_binary(BinaryKind::kMul, Dtype::kF32, {1}, 0, 0);
  test_binary(BinaryKind::kMul, Dtype::kF32, {70000}, 0, 1);
  test_binary(BinaryKind::kAdd, Dtype::kF32, {1, 2, 3, 4, 5, 6}, 0b000101, 0b101010);
}

EK_TEST(binary_fused_activation) {
  Random random(5);
  OpCase op_case = {&kBinaryOp,
                    {{Dtype::kF32, {300}, random_values(random, 300, -3, 3)},
                     {Dtype::kF32, {300}, random_values(random, 300, -3, 3)}},
                    {{Dtype::kF32, {300}}}};
  op_case.with(BinaryAttrs{0, static_cast<int32_t>(Activation::kRelu), 0, 0});
  const std::vector<Values> results = run_everywhere(op_case, "add relu");
  for (size_t i = 0; i < 300; ++i) {
    const float sum = static_cast<float>(op_case.inputs[0].values[i]) + static_cast<float>(op_case.inputs[1].values[i]);
    EK_CHECK(results[0][i] == static_cast<double>(std::max(sum, 0.0f)));
  }
}

EK_TEST(binary_integers_never_trap) {
  const double least = -2147483648.0;
  OpCase op_case = {
      &kBinaryOp, {{Dtype::kI32, {4}, {least, least, 7, -7}}, {Dtype::kI32, {4}, {-1, 0, 0, 0}}}, {{Dtype::kI32, {4}}}};
  for (int kind = 0; kind <= static_cast<int>(BinaryKind::kPrelu); ++kind) {
    run_everywhere(op_case.with(BinaryAttrs{kind, 0, 0, 0}), "extremes");
  }
  const auto results =
      run_everywhere(op_case.with(BinaryAttrs{static_cast<int32_t>(BinaryKind::kDiv), 0, 0, 0}), "div");
  EK_CHECK(results[0] == Values({least, 0, 0, 0}));
  for (const BinaryKind kind : {BinaryKind::kMod, BinaryKind::kFmod}) {
    const auto rest = run_everywhere(op_case.with(BinaryAttrs{static_cast<int32_t>(kind), 0, 0, 0}), "mod");
    EK_CHECK(rest[0] == Values({0, 0, 0, 0}));
  }
}

EK_TEST(binary_refuses) {
  const auto refused = [](Dtype a, Dtype b, Dtype y, Dims y_dims, BinaryAttrs attrs) {
    OpCase op_case = {&kBinaryOp, {{a, {2, 3}}, {b, {2, 3}}}, {{y, y_dims}}};
    EK_CHECK(!check_of(op_case.with(attrs)).is_ok());
  };
  refused(Dtype::kF32, Dtype::kI32, Dtype::kF32, {2, 3}, {0, 0, 0, 0});
  refused(Dtype::kF32, Dtype::kF32, Dtype::kF32, {3, 2}, {0, 0, 0, 0});
  refused(Dtype::kF32, Dtype::kF32, Dtype::kF32, {2, 3}, {18, 0, 0, 0});
  refused(Dtype::kF32, Dtype::kF32, Dtype::kF32, {2, 3}, {-1, 0, 0, 0});
  refused(Dtype::kF32, Dtype::kF32, Dtype::kF32, {2, 3}, {0, 40, 0, 0});
  refused(Dtype::kF32, Dtype::kF32, Dtype::kF32, {2, 3}, {8, 0, 0, 0});     // equal gives bool
  refused(Dtype::kBool, Dtype::kBool, Dtype::kBool, {2, 3}, {0, 0, 0, 0});  // add on bool
  refused(Dtype::kI32, Dtype::kI32, Dtype::kI32, {2, 3}, {0, 1, 0, 0});     // act on integers
}

EK_TEST(unary_integers_and_bools) {
  const Values extremes = {-2147483648.0, -5, -1, 0, 1, 9, 2147483647.0};
  const auto run = [&](Activation kind, Dtype dtype, const Values& values, float alpha, float beta) {
    OpCase op_case = {&kUnaryOp, {{dtype, {7}, values}}, {{dtype, {7}}}};
    return run_everywhere(op_case.with(UnaryAttrs{static_cast<int32_t>(kind), alpha, beta}), name_of(kind))[0];
  };
  for (const Dtype dtype : {Dtype::kI32, Dtype::kI64}) {
    const double top = dtype == Dtype::kI32 ? -2147483648.0 : 2147483648.0;
    EK_CHECK(run(Activation::kAbs, dtype, extremes, 0, 0) == Values({top, 5, 1, 0, 1, 9, 2147483647.0}));
    EK_CHECK(run(Activation::kNeg, dtype, extremes, 0, 0) == Values({top, 5, 1, 0, -1, -9, -2147483647.0}));
    EK_CHECK(run(Activation::kSign, dtype, extremes, 0, 0) == Values({-1, -1, -1, 0, 1, 1, 1}));
    EK_CHECK(run(Activation::kRelu, dtype, extremes, 0, 0) == Values({0, 0, 0, 0, 1, 9, 2147483647.0}));
    EK_CHECK(run(Activation::kClip, dtype, extremes, -2.0f, 3.4e38f) == Values({-2, -2, -1, 0, 1, 9, 2147483647.0}));
    EK_CHECK(run(Activation::kClip, dtype, extremes, -3.4e38f, 4.0f) == Values({-2147483648.0, -5, -1, 0, 1, 4, 4}));
  }
  EK_CHECK(run(Activation::kLogicalNot, Dtype::kBool, {0, 1, 1, 0, 0, 1, 0}, 0, 0) == Values({1, 0, 0, 1, 1, 0, 1}));
}

EK_TEST(unary_floats_any_layout) {
  Random random(3);
  for (const Dims& dims : {Dims{1}, Dims{7}, Dims{3, 5, 11}, Dims{2, 1, 300}, Dims{40000}}) {
    OpCase op_case = {
        &kUnaryOp, {{Dtype::kF32, dims, random_values(random, element_count(dims), -3, 3)}}, {{Dtype::kF32, dims}}};
    for (const Activation kind : {Activation::kNone, Activation::kHardSwish, Activation::kSilu, Activation::kSin}) {
      const auto results = run_everywhere(op_case.with(UnaryAttrs{static_cast<int32_t>(kind), 0, 0}), name_of(kind));
      Values expected;
      for (const double x : op_case.inputs[0].values) {
        expected.push_back(kind == Activation::kNone        ? x
                           : kind == Activation::kHardSwish ? x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0)
                           : kind == Activation::kSin       ? std::sin(x)
                                                            : x / (1 + std::exp(-x)));
      }
      expect_near(results[0], expected, 1e-6, 1e-7, name_of(kind));
    }
  }
}

EK_TEST(unary_refuses) {
  const auto refused = [](Dtype x, int32_t act) {
    OpCase op_case = {&kUnaryOp, {{x, {4}}}, {{x, {4}}}};
    EK_CHECK(!check_of(op_case.with(UnaryAttrs{act, 0, 0})).is_ok());
  };
  refused(Dtype::kF32, 40);
  refused(Dtype::kF32, -1);
  refused(Dtype::kF32, static_cast<int32_t>(Activation::kLogicalNot));
  refused(Dtype::kI32, static_cast<int32_t>(Activation::kSilu));
  refused(Dtype::kBool, static_cast<int32_t>(Activation::kAbs));
  refused(Dtype::kU8, static_cast<int32_t>(Activation::kRelu));
}

EK_TEST(where_selects) {
  Random random(9);
  for (const Dtype dtype : {Dtype::kF32, Dtype::kI32, Dtype::kI64, Dtype::kU8, Dtype::kS8, Dtype::kBool}) {
    const Dims dims = {3, 4, 21};
    const double high = dtype == Dtype::kBool ? 1 : 100;
    const Operand cond = random_operand(random, Dtype::kBool, dims, 0b001, 0, 1);
    const Operand a = random_operand(random, dtype, dims, 0, 0, high),
                  b = random_operand(random, dtype, dims, 0b110, 0, high);
    const auto results = run_everywhere({&kWhereOp, {cond, a, b}, {{dtype, dims}}}, "where");
    Values expected;
    for_each_index(
        dims, [&](const Dims& index) { expected.push_back(seen(cond, index) != 0 ? seen(a, index) : seen(b, index)); });
    EK_CHECK(results[0] == expected);
  }
  EK_CHECK(!check_of({&kWhereOp, {{Dtype::kF32, {2}}, {Dtype::kF32, {2}}, {Dtype::kF32, {2}}}, {{Dtype::kF32, {2}}}})
                .is_ok());
}

}  // namespace
}  // namespace edgekit::test
