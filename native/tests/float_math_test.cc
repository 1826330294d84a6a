// The elementary functions against double precision, over their ranges, and every activation's tables bit-equal.
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "tests/check.h"
#include "tests/op_case.h"
#include "tests/q8_isa.h"

namespace edgekit::test {
namespace {

// Distance in units of the last place of the float nearest to `expected`.
double ulps(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0.0 : 1e9;
  const float nearest = static_cast<float>(expected);
  if (std::isinf(nearest) || std::isinf(actual)) return nearest == actual ? 0.0 : 1e9;
  const double magnitude = std::max(std::fabs(expected), 1.1754943508222875e-38);
  const double unit = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::fabs(static_cast<double>(actual) - expected) / unit;
}

std::vector<float> grid(float low, float high, int count) {
  std::vector<float> points;
  for (int i = 0; i <= count; ++i)
    points.push_back(low + (high - low) * static_cast<float>(i) / static_cast<float>(count));
  // The same range by magnitude, down to the smallest normal numbers.
  for (float magnitude = 1.2e-38f; magnitude < std::max(std::fabs(low), std::fabs(high)); magnitude *= 1.07f) {
    if (magnitude <= high && magnitude >= low) points.push_back(magnitude);
    if (-magnitude >= low && -magnitude <= high) points.push_back(-magnitude);
  }
  return points;
}

std::vector<float> apply(Activation kind, const std::vector<float>& x, Isa isa, float alpha = 0.0f, float beta = 0.0f) {
  std::vector<float> y(x.size());
  activate(elementwise_kernels(isa), {kind, alpha, beta}, x.data(), y.data(), static_cast<int64_t>(x.size()));
  return y;
}

void expect_ulps(Activation kind, float low, float high, double bound, const std::function<double(double)>& exact) {
  const std::vector<float> x = grid(low, high, 200000);
  const std::vector<float> y = apply(kind, x, Isa::kScalar);
  double worst = 0.0;
  float where = 0.0f;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], exact(static_cast<double>(x[i])));
    if (error > worst) worst = error, where = x[i];
  }
  std::printf("     %-10s worst %.3f ulp at %.9g\n", name_of(kind), worst, static_cast<double>(where));
  EK_CHECK_MSG(worst <= bound, std::string(name_of(kind)) + ": " + std::to_string(worst) + " ulp");
}

double exact_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

EK_TEST(exp_within_bound) {
  expect_ulps(Activation::kExp, -87.3f, 88.72f, 1.1, [](double x) { return std::exp(x); });
}
EK_TEST(log_within_bound) {
  expect_ulps(Activation::kLog, 1.2e-38f, 100.0f, 1.0, [](double x) { return std::log(x); });
  expect_ulps(Activation::kLog, 0.5f, 2.0f, 1.0, [](double x) { return std::log(x); });
}
EK_TEST(sigmoid_within_bound) { expect_ulps(Activation::kSigmoid, -87.0f, 87.0f, 3.0, exact_sigmoid); }
EK_TEST(silu_within_bound) {
  expect_ulps(Activation::kSilu, -80.0f, 80.0f, 3.5, [](double x) { return x * exact_sigmoid(x); });
}
EK_TEST(tanh_within_bound) {
  expect_ulps(Activation::kTanh, -12.0f, 12.0f, 3.0, [](double x) { return std::tanh(x); });
}
EK_TEST(erf_within_bound) {
  expect_ulps(Activation::kErf, -5.0f, 5.0f, 2.0, [](double x) { return std::erf(x); });
}
EK_TEST(softplus_within_bound) {
  expect_ulps(Activation::kSoftplus, -80.0f, 80.0f, 3.0, [](double x) { return std::log1p(std::exp(x)); });
}
EK_TEST(mish_within_bound) {
  expect_ulps(Activation::kMish, -80.0f, 80.0f, 4.0, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
}
EK_TEST(elu_within_bound) {
  const std::vector<float> x = grid(-90.0f, 5.0f, 100000);
  const std::vector<float> y = apply(Activation::kElu, x, Isa::kScalar, 1.0f);
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = static_cast<double>(x[i]);
    EK_CHECK(ulps(y[i], value < 0 ? std::expm1(value) : value) <= 2.5);
  }
}
// gelu's 1 + erf cancels for negative x, as it does in every float implementation: the error is bounded absolutely.
EK_TEST(gelu_within_bound) {
  const std::vector<float> x = grid(-10.0f, 10.0f, 100000);
  const std::vector<float> y = apply(Activation::kGelu, x, Isa::kScalar);
  const std::vector<float> t = apply(Activation::kGeluTanh, x, Isa::kScalar);
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = static_cast<double>(x[i]);
    EK_CHECK(std::fabs(static_cast<double>(y[i]) - 0.5 * v * (1.0 + std::erf(v / std::sqrt(2.0)))) <=
             3e-7 * std::max(1.0, std::fabs(v)));
    const double inner = std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v);
    EK_CHECK(std::fabs(static_cast<double>(t[i]) - 0.5 * v * (1.0 + std::tanh(inner))) <=
             3e-7 * std::max(1.0, std::fabs(v)));
  }
}

EK_TEST(special_values) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {-inf, inf, nan, 0.0f, -0.0f, -200.0f, 200.0f};
  const auto at = [&](Activation kind, size_t i) { return apply(kind, x, Isa::kScalar)[i]; };
  EK_CHECK(at(Activation::kExp, 0) == 0.0f && at(Activation::kExp, 1) == inf && at(Activation::kExp, 3) == 1.0f);
  EK_CHECK(at(Activation::kExp, 5) == 0.0f && at(Activation::kExp, 6) == inf);
  EK_CHECK(std::isnan(at(Activation::kLog, 0)) && at(Activation::kLog, 1) == inf && at(Activation::kLog, 3) == -inf);
  EK_CHECK(at(Activation::kSigmoid, 0) == 0.0f && at(Activation::kSigmoid, 1) == 1.0f);
  EK_CHECK(at(Activation::kTanh, 0) == -1.0f && at(Activation::kTanh, 1) == 1.0f);
  EK_CHECK(at(Activation::kErf, 0) == -1.0f && at(Activation::kErf, 1) == 1.0f);
  EK_CHECK(std::signbit(at(Activation::kTanh, 4)) && std::signbit(at(Activation::kErf, 4)));
  EK_CHECK(at(Activation::kSoftplus, 0) == 0.0f && at(Activation::kSoftplus, 1) == inf);
  for (int kind = 0; kind < kActivationCount; ++kind) {
    const auto activation = static_cast<Activation>(kind);
    if (!has_vector_form(activation)) continue;
    if (activation == Activation::kThresholdedRelu) continue;  // a comparison: NaN is not above the threshold
    EK_CHECK_MSG(std::isnan(at(activation, 2)), std::string("NaN is lost by ") + name_of(activation));
  }
}

EK_TEST(tables_bit_equal) {
  std::vector<float> x = grid(-100.0f, 100.0f, 30011);
  for (const float extreme : {1e30f, -1e30f, 3e38f, -3e38f, 0.0f, -0.0f}) x.push_back(extreme);
  x.push_back(std::numeric_limits<float>::infinity());
  x.push_back(-std::numeric_limits<float>::infinity());
  for (int kind = 0; kind < kActivationCount; ++kind) {
    const auto activation = static_cast<Activation>(kind);
    if (activation == Activation::kLogicalNot) continue;
    const std::vector<float> expected = apply(activation, x, Isa::kScalar, 0.7f, 1.3f);
    for (const Isa isa : {Isa::kX86Avx2, Isa::kX86Avx512Vnni, Isa::kArmNeon}) {
      if (!can_run(isa)) continue;
      const std::vector<float> actual = apply(activation, x, isa, 0.7f, 1.3f);
      size_t differing = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const bool both_nan = std::isnan(actual[i]) && std::isnan(expected[i]);
        differing += !both_nan && std::memcmp(&actual[i], &expected[i], sizeof(float)) != 0;
      }
      EK_CHECK_MSG(differing == 0, std::string(name_of(activation)) + " on " + name_of(isa) + ": " +
                                       std::to_string(differing) + " of " + std::to_string(x.size()) + " differ");
    }
  }
}

}  // namespace
}  // namespace edgekit::test
