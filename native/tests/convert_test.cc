// convert on every instruction set of this build that this CPU runs, against the schema's formulas.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/op.h"
#include "tests/check.h"
#include "tests/q8_isa.h"
#include "tests/q8_memory.h"
#include "tests/run_op.h"

namespace edgekit::test {
namespace {

using Flush = GuardedBuffer::Flush;

TensorView view_of(void* data, Dtype dtype, std::vector<int32_t> dims, std::vector<int64_t> strides) {
  TensorView v;
  v.data = data;
  v.dtype = dtype;
  v.rank = static_cast<int>(dims.size());
  for (int i = 0; i < v.rank; ++i) {
    v.dims[i] = dims[static_cast<size_t>(i)];
    v.strides[i] = strides[static_cast<size_t>(i)];
  }
  return v;
}

Status run_convert(const TensorView& x, const TensorView& y, Isa isa, const TensorView* table = nullptr) {
  const TensorView* inputs[] = {&x, table};
  const TensorView* outputs[] = {&y};
  const OpArgs args{inputs, 2, outputs, 1, nullptr};
  EK_RETURN_IF_ERROR(kConvertOp.check(args));
  return run_op(kConvertOp, args, isa, 2);
}

std::vector<Isa> runnable_isas() {
  std::vector<Isa> all{Isa::kScalar};
  for (const IsaPacking& row : kIsaPacking) {
    if (row.isa != Isa::kScalar && can_run(row.isa)) all.push_back(row.isa);
  }
  return all;
}

int plain_quantize(float x, float scale, int zero, int low) {
  const float v = x / scale;
  if (std::isnan(v)) return zero;
  const double rounded = std::nearbyint(static_cast<double>(v)) + zero;
  return static_cast<int>(std::min(std::max(rounded, static_cast<double>(low)), low + 255.0));
}

// Values at, next to and between the steps, and all the odd ones.
float sample(int i, float scale, Random& random) {
  constexpr float kOdd[] = {0.0f,
                            -0.0f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            3e38f,
                            -3e38f,
                            1e-40f};
  if (i % 11 == 0) return kOdd[i / 11 % 8];
  const float step = static_cast<float>(random.range(-300, 300));
  if (i % 3 == 0) return (step + 0.5f) * scale;
  return (step + random.unit()) * scale;
}

void check_quantize(Isa isa, int n, Dtype dtype, float scale) {
  Random random(static_cast<uint64_t>(n));
  const Flush flush = n % 2 ? Flush::kEnd : Flush::kBegin;
  GuardedBuffer x(4 * static_cast<size_t>(n), flush), y(static_cast<size_t>(n), flush);
  for (int i = 0; i < n; ++i) x.as<float>()[i] = sample(i, scale, random);
  const int low = dtype == Dtype::kS8 ? -128 : 0;
  TensorView to = view_of(y.as<void>(), dtype, {n}, {1});
  to.scale = scale;
  to.zero_point = low + random.range(0, 255);
  EK_CHECK(run_convert(view_of(x.as<void>(), Dtype::kF32, {n}, {1}), to, isa).is_ok());
  for (int i = 0; i < n; ++i) {
    const uint8_t byte = y.as<uint8_t>()[i];
    const int got = dtype == Dtype::kS8 ? static_cast<int8_t>(byte) : byte;
    const int expected = plain_quantize(x.as<float>()[i], scale, to.zero_point, low);
    EK_CHECK_MSG(got == expected, std::string(name_of(isa)) + " quantize " + std::to_string(x.as<float>()[i]) + ": " +
                                      std::to_string(got) + ", expected " + std::to_string(expected));
  }
}

EK_TEST(quantize) {
  for (const Isa isa : runnable_isas()) {
    for (const Dtype dtype : {Dtype::kU8, Dtype::kS8}) {
      for (int n = 1; n <= 70; ++n) check_quantize(isa, n, dtype, 0.037f);
      for (const float scale : {0.5f, 1.0f / 255.0f, 1e-30f, 1e10f}) check_quantize(isa, 20000, dtype, scale);
    }
  }
}

// NCHW float to NHWC bytes and back, channels from one to many.
EK_TEST(transposed_images) {
  for (const Isa isa : runnable_isas()) {
    for (const int channels : {1, 2, 3, 4, 16, 40, 70}) {
      for (const int width : {1, 5, 16, 33, 400}) {
        const int h = 3, pixels = h * width, n = pixels * channels;
        GuardedBuffer x(4 * static_cast<size_t>(n)), y(static_cast<size_t>(n)), back(4 * static_cast<size_t>(n));
        Random random(static_cast<uint64_t>(n));
        for (int i = 0; i < n; ++i) x.as<float>()[i] = random.unit() * 40.0f - 20.0f;
        const std::vector<int32_t> dims{1, h, width, channels};
        const std::vector<int64_t> planes{n, width, 1, pixels};
        const std::vector<int64_t> dense{n, static_cast<int64_t>(width) * channels, channels, 1};
        TensorView bytes = view_of(y.as<void>(), Dtype::kU8, dims, dense);
        bytes.scale = 0.1f;
        bytes.zero_point = 77;
        EK_CHECK(run_convert(view_of(x.as<void>(), Dtype::kF32, dims, planes), bytes, isa).is_ok());
        EK_CHECK(run_convert(bytes, view_of(back.as<void>(), Dtype::kF32, dims, planes), isa).is_ok());
        for (int pixel = 0; pixel < pixels; ++pixel) {
          for (int c = 0; c < channels; ++c) {
            const int expected = plain_quantize(x.as<float>()[c * pixels + pixel], 0.1f, 77, 0);
            EK_CHECK(y.as<uint8_t>()[pixel * channels + c] == expected);
            EK_CHECK(back.as<float>()[c * pixels + pixel] == static_cast<float>(expected - 77) * 0.1f);
          }
        }
      }
    }
  }
}

// A table of floats, dense and from NHWC bytes to NCHW.
EK_TEST(dequantize_by_table) {
  constexpr int kPixels = 130, kChannels = 5, kAll = kPixels * kChannels;
  GuardedBuffer x(kAll), table(4 * 256), dense(4 * kAll), planes(4 * kAll);
  Random random(7);
  for (int i = 0; i < kAll; ++i) x.as<uint8_t>()[i] = static_cast<uint8_t>(i);
  for (int i = 0; i < 256; ++i) table.as<float>()[i] = random.unit();
  TensorView entries = view_of(table.as<void>(), Dtype::kF32, {256}, {1});
  for (const Isa isa : runnable_isas()) {
    for (const Dtype dtype : {Dtype::kU8, Dtype::kS8}) {
      TensorView bytes = view_of(x.as<void>(), dtype, {kPixels, kChannels}, {kChannels, 1});
      bytes.scale = 0.5f;
      const TensorView to = view_of(dense.as<void>(), Dtype::kF32, {kPixels, kChannels}, {kChannels, 1});
      const TensorView across = view_of(planes.as<void>(), Dtype::kF32, {kPixels, kChannels}, {1, kPixels});
      EK_CHECK(run_convert(bytes, to, isa, &entries).is_ok());
      EK_CHECK(run_convert(bytes, across, isa, &entries).is_ok());
      for (int i = 0; i < kAll; ++i) {
        const float expected = table.as<float>()[x.as<uint8_t>()[i] ^ (dtype == Dtype::kS8 ? 0x80 : 0)];
        EK_CHECK(dense.as<float>()[i] == expected);
        EK_CHECK(planes.as<float>()[i % kChannels * kPixels + i / kChannels] == expected);
      }
      EK_CHECK(!run_convert(to, bytes, isa, &entries).is_ok());
      entries.dims[0] = 255;
      EK_CHECK(!run_convert(bytes, to, isa, &entries).is_ok());
      entries.dims[0] = 256;
    }
  }
}

EK_TEST(requantize) {
  for (const Isa isa : runnable_isas()) {
    for (const Dtype from : {Dtype::kU8, Dtype::kS8}) {
      for (const Dtype to : {Dtype::kU8, Dtype::kS8}) {
        GuardedBuffer x(256), y(256);
        for (int i = 0; i < 256; ++i) x.as<uint8_t>()[i] = static_cast<uint8_t>(i);
        const int from_low = from == Dtype::kS8 ? -128 : 0, to_low = to == Dtype::kS8 ? -128 : 0;
        TensorView a = view_of(x.as<void>(), from, {256}, {1}), b = view_of(y.as<void>(), to, {256}, {1});
        a.scale = 0.3f, a.zero_point = from_low + 9, b.scale = 0.2f, b.zero_point = to_low + 130;
        EK_CHECK(run_convert(a, b, isa).is_ok());
        for (int i = 0; i < 256; ++i) {
          const int value = from == Dtype::kS8 ? static_cast<int8_t>(i) : i;
          const float ratio = a.scale / b.scale;
          const float v = static_cast<float>(value - a.zero_point) * ratio;
          const double rounded = std::nearbyint(static_cast<double>(v)) + b.zero_point;
          const int expected = static_cast<int>(std::min(std::max(rounded, double(to_low)), to_low + 255.0));
          const uint8_t byte = y.as<uint8_t>()[i];
          EK_CHECK((to == Dtype::kS8 ? static_cast<int8_t>(byte) : byte) == expected);
        }
      }
    }
  }
}

EK_TEST(casts) {
  const float x[] = {0.0f, -0.9f, 1.9f, -1.9f, 300.0f, -300.0f, 3e9f, -3e9f, 1e30f, std::nanf("")};
  const int32_t as_i32[] = {0, 0, 1, -1, 300, -300, INT32_MAX, INT32_MIN, INT32_MAX, 0};
  const uint8_t as_u8[] = {0, 0, 1, 0, 255, 0, 255, 0, 255, 0};
  const uint8_t as_bool[] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  TensorView from = view_of(const_cast<float*>(x), Dtype::kF32, {10}, {1});
  int32_t i32[10];
  uint8_t u8[10], flags[10];
  EK_CHECK(run_convert(from, view_of(i32, Dtype::kI32, {10}, {1}), Isa::kScalar).is_ok());
  EK_CHECK(run_convert(from, view_of(u8, Dtype::kU8, {10}, {1}), Isa::kScalar).is_ok());
  EK_CHECK(run_convert(from, view_of(flags, Dtype::kBool, {10}, {1}), Isa::kScalar).is_ok());
  for (int i = 0; i < 10; ++i) EK_CHECK(i32[i] == as_i32[i] && u8[i] == as_u8[i] && flags[i] == as_bool[i]);
  int64_t i64[10];
  float f32[10];
  EK_CHECK(
      run_convert(view_of(i32, Dtype::kI32, {10}, {1}), view_of(i64, Dtype::kI64, {10}, {1}), Isa::kScalar).is_ok());
  EK_CHECK(
      run_convert(view_of(i64, Dtype::kI64, {10}, {1}), view_of(f32, Dtype::kF32, {10}, {1}), Isa::kScalar).is_ok());
  for (int i = 0; i < 10; ++i) EK_CHECK(i64[i] == as_i32[i] && f32[i] == static_cast<float>(as_i32[i]));
}

EK_TEST(refusals) {
  float x[4] = {};
  uint8_t y[4];
  TensorView from = view_of(x, Dtype::kF32, {4}, {1});
  TensorView to = view_of(y, Dtype::kU8, {4}, {1});
  to.scale = 0.5f;
  to.zero_point = 256;
  EK_CHECK(!run_convert(from, to, Isa::kScalar).is_ok());
  to.zero_point = 0;
  to.strides[0] = 0;
  EK_CHECK(!run_convert(from, to, Isa::kScalar).is_ok());
  to.strides[0] = 1;
  to.dims[0] = 3;
  EK_CHECK(!run_convert(from, to, Isa::kScalar).is_ok());
}

}  // namespace
}  // namespace edgekit::test
