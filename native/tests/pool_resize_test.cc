// pool, resize_nearest and resize_linear against plain loops.
#include <cmath>

#include "tests/check.h"
#include "tests/op_case.h"

namespace edgekit::test {
namespace {

double least_of(Dtype dtype) { return dtype == Dtype::kS8 ? -128 : dtype == Dtype::kU8 ? 0 : -4; }
double most_of(Dtype dtype) { return dtype == Dtype::kS8 ? 127 : dtype == Dtype::kU8 ? 255 : 4; }

Operand image(Random& random, Dtype dtype, const Dims& dims) {
  Operand operand = {dtype, dims,
                     random_values(random, element_count(dims), least_of(dtype), most_of(dtype), dtype != Dtype::kF32)};
  operand.image = true;
  return operand;
}

Operand image_output(Dtype dtype, const Dims& dims) {
  Operand operand = {dtype, dims};
  operand.image = true;
  return operand;
}

// sat(rne(v) + zero) with every step of the schema in float.
double quantized(Dtype dtype, float v, int32_t zero) {
  const double rounded = std::nearbyint(static_cast<double>(v)) + zero;
  return std::min(std::max(rounded, least_of(dtype)), most_of(dtype));
}

double exact_pool(const PoolAttrs& p, const Operand& x, const Dims& index) {
  double sum = 0, greatest = -INFINITY;
  int taps = 0, padded = 0;
  for (int ky = 0; ky < p.kernel_h; ++ky) {
    for (int kx = 0; kx < p.kernel_w; ++kx) {
      const int iy = index[1] * p.stride_h - p.pad_top + ky * p.dilation_h;
      const int ix = index[2] * p.stride_w - p.pad_left + kx * p.dilation_w;
      padded += iy < x.dims[1] + p.pad_bottom && ix < x.dims[2] + p.pad_right;
      if (iy < 0 || iy >= x.dims[1] || ix < 0 || ix >= x.dims[2]) continue;
      const double value = x.values[static_cast<size_t>(place_of(x.dims, {index[0], iy, ix, index[3]}))];
      sum += x.dtype == Dtype::kF32 ? value : value - p.x_zero;
      greatest = std::max(greatest, value);
      ++taps;
    }
  }
  if (taps == 0) return x.dtype == Dtype::kF32 ? 0 : p.y_zero;
  if (p.kind == 0) return greatest;
  const float count = static_cast<float>(p.count_include_pad != 0 ? padded : taps);
  if (x.dtype == Dtype::kF32) return sum / static_cast<double>(count);
  return quantized(x.dtype, static_cast<float>(sum) / count * p.ratio, p.y_zero);
}

void test_pool(PoolAttrs attrs, Dtype dtype, const Dims& x_dims, int32_t out_h, int32_t out_w) {
  Random random(21);
  const Operand x = image(random, dtype, x_dims);
  const Dims y_dims = {x_dims[0], out_h, out_w, x_dims[3]};
  attrs.x_zero = dtype == Dtype::kU8 ? 17 : dtype == Dtype::kS8 ? -9 : 0;
  attrs.y_zero = dtype == Dtype::kU8 ? 120 : dtype == Dtype::kS8 ? 5 : 0;
  attrs.ratio = 0.9371f;
  OpCase op_case = {&kPoolOp, {x}, {image_output(dtype, y_dims)}};
  const std::string label = std::string("pool ") + name_of(dtype) + " kind " + std::to_string(attrs.kind);
  const auto results = run_everywhere(op_case.with(attrs), label);
  if (results.empty()) return;
  Values expected;
  for_each_index(y_dims, [&](const Dims& index) { expected.push_back(exact_pool(attrs, x, index)); });
  expect_near(results[0], expected, 0, dtype == Dtype::kF32 && attrs.kind == 1 ? 2e-6 : 0, label);
}

EK_TEST(pool_windows) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kU8, Dtype::kS8}) {
    for (const int32_t kind : {0, 1}) {
      for (const int32_t c : {1, 3, 7, 8, 11, 16, 24, 31, 32, 37, 64, 65, 100, 300}) {
        test_pool({kind, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1}, dtype, {1, 6, 7, c}, 3, 4);
      }
      for (const int32_t counts_pads : {0, 1}) {
        test_pool({kind, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, counts_pads, 0, 0, 1}, dtype, {2, 6, 7, 35}, 6, 7);
        test_pool({kind, 3, 2, 2, 1, 2, 3, 1, 0, 3, 1, counts_pads, 0, 0, 1}, dtype, {1, 9, 9, 20}, 5, 7);
      }
      test_pool({kind, 7, 7, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1}, dtype, {1, 7, 7, 40}, 1, 1);
      test_pool({kind, 2, 2, 2, 2, 1, 1, 4, 4, 4, 4, 1, 0, 0, 1}, dtype, {1, 3, 3, 5}, 5,
                5);  // windows of padding only
    }
  }
}

EK_TEST(pool_refuses) {
  const PoolAttrs good = {1, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1.0f};
  const auto is_ok = [](Dtype dtype, const PoolAttrs& attrs, Dims x, Dims y) {
    OpCase op_case = {&kPoolOp, {{dtype, std::move(x)}}, {{dtype, std::move(y)}}};
    return check_of(op_case.with(attrs)).is_ok();
  };
  EK_CHECK(is_ok(Dtype::kU8, good, {1, 4, 4, 3}, {1, 2, 2, 3}));
  EK_CHECK(!is_ok(Dtype::kI32, good, {1, 4, 4, 3}, {1, 2, 2, 3}));
  EK_CHECK(!is_ok(Dtype::kU8, good, {1, 4, 4, 3}, {1, 2, 2, 4}));
  EK_CHECK(!is_ok(Dtype::kU8, good, {1, 4, 4, 3}, {2, 2, 2, 3}));
  const auto refused = [&](int32_t PoolAttrs::*field, int32_t value) {
    PoolAttrs attrs = good;
    attrs.*field = value;
    EK_CHECK(!is_ok(Dtype::kU8, attrs, {1, 4, 4, 3}, {1, 2, 2, 3}));
  };
  for (const auto field : {&PoolAttrs::kernel_h, &PoolAttrs::kernel_w, &PoolAttrs::stride_h, &PoolAttrs::stride_w,
                           &PoolAttrs::dilation_h, &PoolAttrs::dilation_w}) {
    for (const int32_t value : {0, -1, INT32_MAX, INT32_MIN}) refused(field, value);
  }
  for (const auto field : {&PoolAttrs::pad_top, &PoolAttrs::pad_left, &PoolAttrs::pad_bottom, &PoolAttrs::pad_right}) {
    for (const int32_t value : {INT32_MAX, INT32_MIN}) refused(field, value);
  }
  refused(&PoolAttrs::kind, 2);
  refused(&PoolAttrs::x_zero, 256);
  refused(&PoolAttrs::y_zero, -1);
  refused(&PoolAttrs::count_include_pad, 2);
}

Operand table(Dtype dtype, const Values& values) {
  Operand operand = {dtype, {static_cast<int32_t>(values.size())}, values};
  operand.fixed = true;
  return operand;
}

EK_TEST(resize_nearest_gathers_pixels) {
  Random random(22);
  const Values iy = {0, 0, 1, 1, 3, 2, 2}, ix = {0, 1, 1, 2, 2, 4, 0, 3, 3};
  for (const Dtype dtype : {Dtype::kF32, Dtype::kU8, Dtype::kS8, Dtype::kI64}) {
    for (const int32_t c : {1, 2, 4, 16, 31, 32, 64, 128}) {
      Operand x = image(random, dtype, {2, 4, 5, c});
      const Dims y_dims = {2, 7, 9, c};
      const auto results = run_everywhere(
          {&kResizeNearestOp, {x, table(Dtype::kI32, iy), table(Dtype::kI32, ix)}, {image_output(dtype, y_dims)}},
          "nearest");
      if (results.empty()) return;
      Values expected;
      for_each_index(y_dims, [&](const Dims& i) {
        const Dims from = {i[0], static_cast<int32_t>(iy[static_cast<size_t>(i[1])]),
                           static_cast<int32_t>(ix[static_cast<size_t>(i[2])]), i[3]};
        expected.push_back(x.values[static_cast<size_t>(place_of(x.dims, from))]);
      });
      EK_CHECK(results[0] == expected);
    }
  }
}

EK_TEST(resize_linear_interpolates) {
  Random random(23);
  const Values y0 = {0, 0, 1, 2, 3}, y1 = {0, 1, 2, 3, 3}, wy = {0, 0.25, 0.5, 0.75, 0};
  const Values x0 = {0, 1, 2, 3}, x1 = {1, 1, 3, 4}, wx = {0.125, 0, 0.375, 0.9375};
  for (const Dtype dtype : {Dtype::kF32, Dtype::kU8, Dtype::kS8}) {
    for (const int32_t c : {1, 3, 8, 16, 37}) {
      const Operand x = image(random, dtype, {2, 4, 5, c});
      const Dims y_dims = {2, 5, 4, c};
      const ResizeLinearAttrs attrs = {dtype == Dtype::kU8 ? 10 : 0, dtype == Dtype::kU8 ? 20 : 0, 1.25f};
      OpCase op_case = {&kResizeLinearOp,
                        {x, table(Dtype::kI32, y0), table(Dtype::kI32, y1), table(Dtype::kF32, wy),
                         table(Dtype::kI32, x0), table(Dtype::kI32, x1), table(Dtype::kF32, wx)},
                        {image_output(dtype, y_dims)}};
      const auto results = run_everywhere(op_case.with(attrs), "linear");
      if (results.empty()) return;
      Values expected;
      for_each_index(y_dims, [&](const Dims& i) {
        const auto row = static_cast<size_t>(i[1]), column = static_cast<size_t>(i[2]);
        const auto pixel = [&](double iy, double ix) {
          const Dims from = {i[0], static_cast<int32_t>(iy), static_cast<int32_t>(ix), i[3]};
          return static_cast<float>(x.values[static_cast<size_t>(place_of(x.dims, from))] - attrs.x_zero);
        };
        const float w = static_cast<float>(wx[column]);
        const float top = pixel(y0[row], x0[column]) + (pixel(y0[row], x1[column]) - pixel(y0[row], x0[column])) * w;
        const float bottom = pixel(y1[row], x0[column]) + (pixel(y1[row], x1[column]) - pixel(y1[row], x0[column])) * w;
        const float v = top + (bottom - top) * static_cast<float>(wy[row]);
        expected.push_back(dtype == Dtype::kF32 ? static_cast<double>(v)
                                                : quantized(dtype, v * attrs.ratio, attrs.y_zero));
      });
      EK_CHECK(results[0] == expected);
    }
  }
}

EK_TEST(resize_refuses_bad_tables) {
  const auto is_ok = [](const Values& iy, const Values& ix) {
    Operand x = {Dtype::kF32, {1, 2, 2, 1}}, y = {Dtype::kF32, {1, 2, 3, 1}};
    return check_of({&kResizeNearestOp, {x, table(Dtype::kI32, iy), table(Dtype::kI32, ix)}, {y}}).is_ok();
  };
  EK_CHECK(is_ok({0, 1}, {0, 1, 1}));
  EK_CHECK(!is_ok({0, 2}, {0, 1, 1}));
  EK_CHECK(!is_ok({0, 1}, {0, -1, 1}));
  EK_CHECK(!is_ok({0, 1}, {0, 1}));
  EK_CHECK(!is_ok({0, 1, 1}, {0, 1, 1}));
  EK_CHECK(!is_ok({2147483647, 0}, {0, 1, 1}));
}

}  // namespace
}  // namespace edgekit::test
