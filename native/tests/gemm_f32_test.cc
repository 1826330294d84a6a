// conv_f32, depthwise_f32, matmul_f32 and lstm against plain loops in double precision.
#include "kernels/gemm_f32/gemm_f32.h"

#include <cmath>

#include "tests/check.h"
#include "tests/op_case.h"

namespace edgekit::test {
namespace {

struct ConvShape {
  int32_t n, h, w, ic, oc, groups;
  int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  int32_t out_h, out_w;
};

// weights [oc][kh][kw][icg] in the packed order of the schema.
Values packed_weights(const ConvShape& s, const Values& weights, int nr) {
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups, panels = (ocg + nr - 1) / nr;
  const int depth = s.kernel_h * s.kernel_w * icg;
  Values packed(static_cast<size_t>(s.groups * panels * depth * nr), 0.0);
  for (int oc = 0; oc < s.oc; ++oc) {
    const int group = oc / ocg, column = oc % ocg;
    for (int k = 0; k < depth; ++k) {
      packed[static_cast<size_t>(((group * panels + column / nr) * depth + k) * nr + column % nr)] =
          weights[static_cast<size_t>(oc * depth + k)];
    }
  }
  return packed;
}

double exact_activation(Activation kind, double v) {
  switch (kind) {
    case Activation::kRelu:
      return std::max(v, 0.0);
    case Activation::kSilu:
      return v / (1 + std::exp(-v));
    case Activation::kClip:
      return std::min(std::max(v, -0.5), 0.75);
    default:
      return v;
  }
}

struct Fused {
  Activation act = Activation::kNone;
  bool residual = false, before = false;
};

// One output of a convolution: taps of x (group's channels) times weights [kh][kw][icg].
double exact_output(const ConvShape& s, const Values& x, const Values& weights, double bias, const Dims& index) {
  const int icg = s.ic / s.groups, group = index[3] / (s.oc / s.groups);
  double sum = bias;
  for (int ky = 0; ky < s.kernel_h; ++ky) {
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      const int iy = index[1] * s.stride_h - s.pad_top + ky * s.dilation_h;
      const int ix = index[2] * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (iy < 0 || iy >= s.h || ix < 0 || ix >= s.w) continue;
      for (int c = 0; c < icg; ++c) {
        sum += x[static_cast<size_t>(((index[0] * s.h + iy) * s.w + ix) * s.ic + group * icg + c)] *
               weights[static_cast<size_t>(((index[3] * s.kernel_h + ky) * s.kernel_w + kx) * icg + c)];
      }
    }
  }
  return sum;
}

double fuse(const Fused& fused, double sum, double residual) {
  if (!fused.residual) return exact_activation(fused.act, sum);
  return fused.before ? exact_activation(fused.act, sum + residual) : exact_activation(fused.act, sum) + residual;
}

void test_conv(const ConvShape& s, const Fused& fused, const std::string& label) {
  Random random(11);
  const int icg = s.ic / s.groups, depth = s.kernel_h * s.kernel_w * icg;
  const Dims x_dims = {s.n, s.h, s.w, s.ic}, y_dims = {s.n, s.out_h, s.out_w, s.oc};
  Operand x = {Dtype::kF32, x_dims, random_values(random, element_count(x_dims), -1, 1)};
  Operand residual = {Dtype::kF32, y_dims, random_values(random, element_count(y_dims), -1, 1)};
  x.image = residual.image = true;
  residual.absent = !fused.residual;
  Operand bias = {Dtype::kF32, {s.oc}, random_values(random, s.oc, -1, 1)};
  bias.fixed = true;
  Operand y = {Dtype::kF32, y_dims};
  y.image = true;
  const Values weights = random_values(random, s.oc * depth, -1, 1);
  Values expected;
  for_each_index(y_dims, [&](const Dims& index) {
    const double sum = exact_output(s, x.values, weights, bias.values[static_cast<size_t>(index[3])], index);
    expected.push_back(fuse(fused, sum, residual.values[static_cast<size_t>(place_of(y_dims, index))]));
  });
  std::vector<Values> first;
  for (const int nr : {8, 16, 32}) {
    const int panels = (s.oc / s.groups + nr - 1) / nr;
    Operand w = {Dtype::kF32, {s.groups, panels, depth, nr}, packed_weights(s, weights, nr)};
    w.fixed = true;
    OpCase op_case = {&kConvF32Op, {x, w, bias, residual}, {y}};
    op_case.with(ConvF32Attrs{s.groups, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w,
                              s.pad_top, s.pad_left, nr, static_cast<int32_t>(fused.act), -0.5f, 0.75f, fused.before});
    const std::vector<Values> results = run_everywhere(op_case, label + " nr " + std::to_string(nr));
    if (results.empty()) return;
    expect_near(results[0], expected, 1e-5, 2e-6 * std::sqrt(depth) + 1e-6, label);
    if (first.empty()) first = results;
    EK_CHECK_MSG(first == results, label + ": the width of panels changes bits");
  }
}

EK_TEST(conv_shapes) {
  test_conv({1, 5, 6, 3, 7, 1, 3, 3, 1, 1, 1, 1, 1, 1, 5, 6}, {}, "3x3");
  test_conv({2, 7, 5, 4, 17, 1, 3, 3, 2, 2, 1, 1, 1, 1, 4, 3}, {}, "3x3 stride 2");
  test_conv({1, 9, 9, 3, 20, 1, 7, 7, 2, 2, 1, 1, 3, 3, 5, 5}, {}, "stem");
  test_conv({1, 6, 6, 8, 33, 1, 1, 1, 1, 1, 1, 1, 0, 0, 6, 6}, {}, "pointwise");
  test_conv({1, 6, 6, 8, 33, 1, 1, 1, 2, 2, 1, 1, 0, 0, 3, 3}, {}, "pointwise stride 2");
  test_conv({1, 6, 6, 5, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, 8}, {}, "pointwise padded");
  test_conv({1, 8, 8, 6, 12, 3, 3, 3, 1, 1, 1, 1, 1, 1, 8, 8}, {}, "grouped");
  test_conv({1, 9, 9, 4, 5, 1, 3, 2, 1, 2, 2, 3, 2, 1, 9, 4}, {}, "dilated");
  test_conv({1, 9, 9, 12, 5, 1, 3, 2, 1, 2, 2, 3, 2, 1, 9, 4}, {}, "dilated, a run for each tap");
  test_conv({2, 8, 9, 27, 12, 3, 3, 3, 1, 2, 1, 1, 1, 1, 8, 5}, {}, "grouped, a run for each tap");
  test_conv({1, 7, 7, 80, 20, 1, 3, 3, 1, 1, 2, 2, 2, 2, 7, 7}, {}, "dilated, in chunks");
  test_conv({1, 8, 8, 4, 5, 1, 3, 3, 1, 1, 1, 1, -1, -2, 5, 4}, {}, "negative pads");
  test_conv({1, 1, 9, 4, 5, 1, 1, 3, 1, 1, 1, 1, 0, 1, 1, 9}, {}, "one-dimensional");
  test_conv({1, 1, 1, 300, 40, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1}, {}, "fully connected");
  test_conv({1, 3, 3, 2, 3, 1, 5, 5, 1, 1, 1, 1, 20, 20, 4, 4}, {}, "nothing but padding");
}

EK_TEST(conv_fused) {
  const ConvShape shape = {1, 5, 6, 3, 19, 1, 3, 3, 1, 1, 1, 1, 1, 1, 5, 6};
  for (const Activation act : {Activation::kNone, Activation::kRelu, Activation::kSilu, Activation::kClip}) {
    for (const bool before : {false, true}) test_conv(shape, {act, true, before}, std::string("fused ") + name_of(act));
    test_conv(shape, {act, false, false}, std::string("fused ") + name_of(act));
  }
}

EK_TEST(conv_every_channel_count) {
  for (int32_t oc = 1; oc <= 35; oc += 2) test_conv({1, 3, 5, 2, oc, 1, 1, 3, 1, 1, 1, 1, 0, 1, 3, 5}, {}, "oc");
  for (int32_t width = 1; width <= 26; ++width)
    test_conv({1, 1, width, 3, 16, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, width}, {}, "m");
}

EK_TEST(conv_blocks_and_threads) { test_conv({1, 24, 25, 16, 40, 1, 3, 3, 1, 1, 1, 1, 1, 1, 24, 25}, {}, "blocks"); }

void test_depthwise(const ConvShape& s, const Fused& fused) {
  Random random(12);
  const Dims x_dims = {s.n, s.h, s.w, s.ic}, y_dims = {s.n, s.out_h, s.out_w, s.ic};
  const int taps = s.kernel_h * s.kernel_w;
  Operand x = {Dtype::kF32, x_dims, random_values(random, element_count(x_dims), -1, 1)};
  Operand w = {Dtype::kF32, {taps, s.ic}, random_values(random, taps * s.ic, -1, 1)};
  Operand bias = {Dtype::kF32, {s.ic}, random_values(random, s.ic, -1, 1)};
  Operand residual = {Dtype::kF32, y_dims, random_values(random, element_count(y_dims), -1, 1)};
  Operand y = {Dtype::kF32, y_dims};
  x.image = y.image = residual.image = w.fixed = bias.fixed = true;
  residual.absent = !fused.residual;
  OpCase op_case = {&kDepthwiseF32Op, {x, w, bias, residual}, {y}};
  op_case.with(DepthwiseF32Attrs{s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w, s.pad_top,
                                 s.pad_left, static_cast<int32_t>(fused.act), -0.5f, 0.75f, fused.before});
  const std::vector<Values> results = run_everywhere(op_case, "depthwise");
  if (results.empty()) return;
  Values by_channel(w.values.size());  // [channel][tap], as exact_output reads
  for (int t = 0; t < taps; ++t) {
    for (int c = 0; c < s.ic; ++c)
      by_channel[static_cast<size_t>(c * taps + t)] = w.values[static_cast<size_t>(t * s.ic + c)];
  }
  Values expected;
  for_each_index(y_dims, [&](const Dims& index) {
    const double sum = exact_output(s, x.values, by_channel, bias.values[static_cast<size_t>(index[3])], index);
    expected.push_back(fuse(fused, sum, residual.values[static_cast<size_t>(place_of(y_dims, index))]));
  });
  expect_near(results[0], expected, 1e-5, 1e-5, "depthwise");
}

EK_TEST(depthwise_shapes) {
  for (const int32_t c : {1, 3, 8, 16, 21, 40}) {
    test_depthwise({1, 7, 13, c, c, c, 3, 3, 1, 1, 1, 1, 1, 1, 7, 13}, {Activation::kRelu});
    test_depthwise({2, 7, 12, c, c, c, 5, 5, 2, 2, 1, 1, 2, 2, 4, 6}, {Activation::kSilu, true, false});
    test_depthwise({1, 9, 20, c, c, c, 3, 2, 1, 1, 2, 3, 2, 1, 9, 19}, {Activation::kNone, true, true});
  }
  test_depthwise({1, 2, 2, 4, 4, 4, 3, 3, 1, 1, 1, 1, 9, 9, 4, 4}, {});
}

EK_TEST(conv_refuses) {
  const ConvF32Attrs good = {1, 3, 3, 1, 1, 1, 1, 1, 1, 16, 0, 0, 0, 0};
  const auto status = [](const ConvF32Attrs& attrs, Dims w_dims) {
    Operand x = {Dtype::kF32, {1, 4, 4, 4}}, y = {Dtype::kF32, {1, 4, 4, 8}}, w = {Dtype::kF32, std::move(w_dims)};
    OpCase op_case = {&kConvF32Op, {x, w, {Dtype::kF32, {8}}}, {y}};
    return check_of(op_case.with(attrs));
  };
  EK_CHECK(status(good, {1, 1, 36, 16}).is_ok());
  EK_CHECK(!status(good, {1, 1, 35, 16}).is_ok());
  EK_CHECK(!status(good, {1, 2, 36, 16}).is_ok());
  const auto refused = [&](int32_t ConvF32Attrs::*field, int32_t value) {
    ConvF32Attrs attrs = good;
    attrs.*field = value;
    EK_CHECK(!status(attrs, {1, 1, 36, 16}).is_ok());
  };
  for (const auto field :
       {&ConvF32Attrs::groups, &ConvF32Attrs::kernel_h, &ConvF32Attrs::kernel_w, &ConvF32Attrs::stride_h,
        &ConvF32Attrs::stride_w, &ConvF32Attrs::dilation_h, &ConvF32Attrs::dilation_w}) {
    for (const int32_t value : {0, -1, INT32_MAX, INT32_MIN}) refused(field, value);
  }
  for (const int32_t value : {INT32_MAX, INT32_MIN}) refused(&ConvF32Attrs::pad_top, value);
  refused(&ConvF32Attrs::groups, 3);
  refused(&ConvF32Attrs::nr, 4);
  refused(&ConvF32Attrs::act, 40);
  refused(&ConvF32Attrs::act, static_cast<int32_t>(Activation::kSin));
  refused(&ConvF32Attrs::add_before_act, 2);
}

void test_matmul(const Dims& batch, int32_t m, int32_t n, int32_t k, uint32_t broadcast_a, float alpha) {
  Random random(13);
  const auto with = [&](int32_t rows, int32_t columns) {
    Dims dims = batch;
    dims.push_back(rows);
    dims.push_back(columns);
    return dims;
  };
  Operand a = {Dtype::kF32, with(m, k)}, b = {Dtype::kF32, with(k, n)};
  a.broadcast_axes = broadcast_a;
  Dims a_source = a.dims;
  for (size_t i = 0; i < batch.size(); ++i) a_source[i] = (broadcast_a >> i & 1) != 0 ? 1 : a_source[i];
  a.values = random_values(random, element_count(a_source), -1, 1);
  b.values = random_values(random, element_count(b.dims), -1, 1);
  OpCase op_case = {&kMatmulF32Op, {a, b}, {{Dtype::kF32, with(m, n)}}};
  const auto results = run_everywhere(op_case.with(MatmulF32Attrs{alpha}), "matmul");
  if (results.empty()) return;
  Values expected;
  for_each_index(with(m, n), [&](const Dims& index) {
    double sum = 0;
    Dims at_a = index, at_b = index;
    for (size_t i = 0; i < batch.size(); ++i) at_a[i] = a_source[i] == 1 ? 0 : index[i];
    for (int32_t i = 0; i < k; ++i) {
      at_a.back() = i;
      at_b[batch.size()] = i;
      sum += a.values[static_cast<size_t>(place_of(a_source, at_a))] *
             b.values[static_cast<size_t>(place_of(b.dims, at_b))];
    }
    expected.push_back(static_cast<double>(alpha) * sum);
  });
  expect_near(results[0], expected, 1e-5, 3e-6 * std::sqrt(k), "matmul");
}

EK_TEST(matmul_shapes) {
  for (const int32_t m : {1, 2, 7, 13}) {
    for (const int32_t n : {1, 8, 17, 48}) {
      for (const int32_t k : {1, 5, 64}) test_matmul({}, m, n, k, 0, 1.0f);
    }
  }
  test_matmul({2, 3}, 9, 20, 11, 0b01, 0.125f);
  test_matmul({3}, 40, 33, 30, 0b1, 1.0f);
  test_matmul({}, 210, 40, 70, 0, 1.0f);
}

EK_TEST(matmul_refuses) {
  const auto refused = [](Dims a, Dims b, Dims y) {
    OpCase op_case = {
        &kMatmulF32Op, {{Dtype::kF32, std::move(a)}, {Dtype::kF32, std::move(b)}}, {{Dtype::kF32, std::move(y)}}};
    EK_CHECK(!check_of(op_case.with(MatmulF32Attrs{1})).is_ok());
  };
  refused({2, 3}, {4, 5}, {2, 5});
  refused({3}, {3}, {3});
  refused({2, 2, 3}, {2, 3, 5}, {1, 2, 5});
  refused({2, 3}, {1, 3, 5}, {2, 5});
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void test_lstm(LstmDirection direction, int32_t steps, int32_t batch, int32_t inputs, int32_t hidden, bool optionals) {
  Random random(14);
  const int32_t directions = direction == LstmDirection::kBidirectional ? 2 : 1;
  const auto operand = [&](const Dims& dims, bool fixed, bool present) {
    Operand made = {Dtype::kF32, dims, random_values(random, element_count(dims), -0.6, 0.6)};
    made.fixed = fixed;
    made.absent = !present;
    if (!present) std::fill(made.values.begin(), made.values.end(), 0.0);
    return made;
  };
  const Operand x = operand({steps, batch, inputs}, false, true),
                w = operand({directions, 4 * hidden, inputs}, true, true);
  const Operand r = operand({directions, 4 * hidden, hidden}, true, true),
                b = operand({directions, 8 * hidden}, true, optionals);
  const Operand h0 = operand({directions, batch, hidden}, false, optionals),
                c0 = operand({directions, batch, hidden}, false, optionals);
  const Dims y_dims = {steps, directions, batch, hidden}, state_dims = {directions, batch, hidden};
  OpCase op_case = {
      &kLstmOp, {x, w, r, b, h0, c0}, {{Dtype::kF32, y_dims}, {Dtype::kF32, state_dims}, {Dtype::kF32, state_dims}}};
  op_case.outputs[2].absent = !optionals;
  const auto results = run_everywhere(op_case.with(LstmAttrs{static_cast<int32_t>(direction), hidden}), "lstm");
  if (results.empty()) return;
  Values y(static_cast<size_t>(element_count(y_dims))), last_h(h0.values), last_c(c0.values);
  for (int32_t d = 0; d < directions; ++d) {
    for (int32_t step = 0; step < steps; ++step) {
      const int32_t t = direction == LstmDirection::kReverse || d == 1 ? steps - 1 - step : step;
      const Values h_before = last_h;
      for (int32_t n = 0; n < batch; ++n) {
        for (int32_t i = 0; i < hidden; ++i) {
          double gates[4];
          for (int32_t g = 0; g < 4; ++g) {
            const int32_t row = g * hidden + i;
            double sum = b.values[static_cast<size_t>(d * 8 * hidden + row)] +
                         b.values[static_cast<size_t>(d * 8 * hidden + 4 * hidden + row)];
            for (int32_t k = 0; k < inputs; ++k) {
              sum += x.values[static_cast<size_t>((t * batch + n) * inputs + k)] *
                     w.values[static_cast<size_t>((d * 4 * hidden + row) * inputs + k)];
            }
            for (int32_t k = 0; k < hidden; ++k) {
              sum += h_before[static_cast<size_t>((d * batch + n) * hidden + k)] *
                     r.values[static_cast<size_t>((d * 4 * hidden + row) * hidden + k)];
            }
            gates[g] = sum;
          }
          const auto at = static_cast<size_t>((d * batch + n) * hidden + i);
          last_c[at] = sigmoid(gates[2]) * last_c[at] + sigmoid(gates[0]) * std::tanh(gates[3]);
          last_h[at] = sigmoid(gates[1]) * std::tanh(last_c[at]);
          y[static_cast<size_t>(place_of(y_dims, {t, d, n, i}))] = last_h[at];
        }
      }
    }
  }
  expect_near(results[0], y, 1e-5, 1e-6, "lstm y");
  expect_near(results[1], last_h, 1e-5, 1e-6, "lstm last hidden");
  if (optionals) expect_near(results[2], last_c, 1e-5, 1e-6, "lstm last cell");
}

EK_TEST(lstm_directions) {
  for (const LstmDirection direction :
       {LstmDirection::kForward, LstmDirection::kReverse, LstmDirection::kBidirectional}) {
    test_lstm(direction, 5, 1, 7, 6, true);
    test_lstm(direction, 4, 3, 9, 11, false);
    test_lstm(direction, 3, 2, 16, 16, true);
  }
}

}  // namespace
}  // namespace edgekit::test
