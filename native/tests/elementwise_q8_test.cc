// lut_q8 and binary_q8 on every instruction set of this build that this CPU runs, against the schema's formulas.
#include <cmath>
#include <vector>

#include "kernels/op.h"
#include "tests/check.h"
#include "tests/q8_isa.h"
#include "tests/q8_memory.h"
#include "tests/run_op.h"

namespace edgekit::test {
namespace {

using Flush = GuardedBuffer::Flush;

// n elements, `stride` bytes apart, in memory that ends with the last (or begins with the first).
struct Row {
  GuardedBuffer memory;
  TensorView view;

  Row(int n, int stride, Dtype dtype, Flush flush) : memory(static_cast<size_t>((n - 1) * stride + 1), flush) {
    view.data = memory.as<uint8_t>();
    view.dtype = dtype;
    view.rank = 1;
    view.dims[0] = n;
    view.strides[0] = stride;
  }
  uint8_t& byte(int i) { return memory.as<uint8_t>()[i * view.strides[0]]; }
  int value(int i) { return view.dtype == Dtype::kS8 ? static_cast<int8_t>(byte(i)) : byte(i); }
};

Status check_and_run(const OpDef& op, std::vector<const TensorView*> inputs, const TensorView& y,
                     const void* attributes, Isa isa) {
  const TensorView* outputs[] = {&y};
  const OpArgs args{inputs.data(), static_cast<int>(inputs.size()), outputs, 1, attributes};
  EK_RETURN_IF_ERROR(op.check(args));
  return run_op(op, args, isa, 2);
}

std::vector<Isa> runnable_isas() {
  std::vector<Isa> all{Isa::kScalar};
  for (const IsaPacking& row : kIsaPacking) {
    if (row.isa != Isa::kScalar && can_run(row.isa)) all.push_back(row.isa);
  }
  return all;
}

void check_lut(Isa isa, int n, int x_stride, int y_stride, Dtype dtype) {
  Random random(static_cast<uint64_t>(n + 1000 * x_stride));
  const Flush flush = n % 2 ? Flush::kEnd : Flush::kBegin;
  Row x(n, x_stride, dtype, flush), y(n, y_stride, dtype, flush), lut(256, 1, dtype, flush);
  for (int i = 0; i < n; ++i) x.byte(i) = static_cast<uint8_t>(n >= 256 ? i : random.next());
  for (int i = 0; i < 256; ++i) lut.byte(i) = static_cast<uint8_t>(random.next());
  EK_CHECK(check_and_run(kLutQ8Op, {&x.view, &lut.view}, y.view, nullptr, isa).is_ok());
  for (int i = 0; i < n; ++i) {
    const int index = dtype == Dtype::kS8 ? x.value(i) + 128 : x.value(i);
    EK_CHECK_MSG(y.byte(i) == lut.byte(index), std::string(name_of(isa)) + " lut n=" + std::to_string(n));
  }
}

EK_TEST(lut) {
  for (const Isa isa : runnable_isas()) {
    for (int n = 1; n <= 130; ++n) check_lut(isa, n, 1, 1, n % 3 ? Dtype::kU8 : Dtype::kS8);
    for (const int n : {256, 300, 5000}) {
      for (const Dtype dtype : {Dtype::kU8, Dtype::kS8}) {
        for (const int stride : {1, 2, 3}) {
          check_lut(isa, n, stride, 1, dtype);
          check_lut(isa, n, 1, stride, dtype);
        }
      }
    }
  }
}

int plain_binary(const BinaryQ8Attrs& p, int a, int b) {
  const float lhs = static_cast<float>(a - p.a_zero);
  const float rhs = static_cast<float>(b - p.b_zero);
  float v = 0.0f;
  if (p.kind == 2) {
    const float product = lhs * rhs;
    v = product * p.a_scale;
  } else {
    const float scaled_lhs = lhs * p.a_scale;
    const float scaled_rhs = rhs * p.b_scale;
    v = p.kind == 0 ? scaled_lhs + scaled_rhs : scaled_lhs - scaled_rhs;
  }
  v = std::min(std::max(v, static_cast<float>(p.y_min - p.y_zero)), static_cast<float>(p.y_max - p.y_zero));
  return static_cast<int>(std::nearbyint(static_cast<double>(v))) + p.y_zero;
}

struct BinaryCase {
  int n, a_stride, b_stride, y_stride, kind;
  Dtype dtype;
  bool clamp, ties;
  bool in_place = false;  // y is a
};

void check_binary(Isa isa, const BinaryCase& c) {
  Random random(static_cast<uint64_t>(c.n * 7 + c.kind + c.a_stride));
  const Flush flush = c.n % 2 ? Flush::kEnd : Flush::kBegin;
  Row a(c.n, c.a_stride, c.dtype, flush), b(c.n, c.b_stride, c.dtype, flush), y(c.n, c.y_stride, c.dtype, flush);
  for (int i = 0; i < c.n; ++i) a.byte(i) = static_cast<uint8_t>(random.next());
  for (int i = 0; i < c.n; ++i) b.byte(i) = static_cast<uint8_t>(random.next());
  const int low = c.dtype == Dtype::kS8 ? -128 : 0;
  BinaryQ8Attrs p{};
  p.kind = c.kind;
  p.a_zero = low + random.range(0, 255);
  p.b_zero = low + random.range(0, 255);
  p.y_zero = low + random.range(0, 255);
  p.a_scale = c.ties ? 0.5f : (c.kind == 2 ? 0.02f : 0.7f) * (0.5f + random.unit());
  p.b_scale = c.ties ? 1.0f : 0.7f * (0.5f + random.unit());
  p.y_min = c.clamp ? p.y_zero : low;
  p.y_max = low + 255;
  std::vector<int> expected(static_cast<size_t>(c.n));
  for (int i = 0; i < c.n; ++i) expected[static_cast<size_t>(i)] = plain_binary(p, a.value(i), b.value(i));
  Row& to = c.in_place ? a : y;
  EK_CHECK(check_and_run(kBinaryQ8Op, {&a.view, &b.view}, to.view, &p, isa).is_ok());
  for (int i = 0; i < c.n; ++i) {
    EK_CHECK_MSG(to.value(i) == expected[static_cast<size_t>(i)],
                 std::string(name_of(isa)) + " binary kind " + std::to_string(c.kind) + " n=" + std::to_string(c.n) +
                     ": " + std::to_string(to.value(i)) + ", expected " +
                     std::to_string(expected[static_cast<size_t>(i)]));
  }
}

EK_TEST(binary) {
  for (const Isa isa : runnable_isas()) {
    for (const int kind : {0, 1, 2}) {
      for (const Dtype dtype : {Dtype::kU8, Dtype::kS8}) {
        for (int n = 1; n <= 130; ++n) {
          check_binary(isa, {n, 1, 1, 1, kind, dtype, n % 2 == 0, n % 3 == 0});
          check_binary(isa, {n, 1, 1, 1, kind, dtype, n % 3 == 0, n % 2 == 0, true});
        }
        for (const int n : {40, 3000}) {
          check_binary(isa, {n, 1, 0, 1, kind, dtype, false, false});
          check_binary(isa, {n, 0, 1, 1, kind, dtype, true, false});
          check_binary(isa, {n, 2, 1, 3, kind, dtype, false, true});
          check_binary(isa, {n, 1, 1, 1, kind, dtype, false, true});
        }
      }
    }
  }
}

// Every pair of values.
EK_TEST(binary_exhaustive) {
  for (const Isa isa : runnable_isas()) {
    for (const int kind : {0, 1, 2}) {
      Row a(65536, 1, Dtype::kU8, Flush::kEnd), b(65536, 1, Dtype::kU8, Flush::kEnd),
          y(65536, 1, Dtype::kU8, Flush::kEnd);
      for (int i = 0; i < 65536; ++i) {
        a.byte(i) = static_cast<uint8_t>(i);
        b.byte(i) = static_cast<uint8_t>(i >> 8);
      }
      const BinaryQ8Attrs p{kind, 3, kind == 2 ? 0.0117f : 0.83f, 200, 0.41f, 17, 0, 255};
      EK_CHECK(check_and_run(kBinaryQ8Op, {&a.view, &b.view}, y.view, &p, isa).is_ok());
      for (int i = 0; i < 65536; ++i) EK_CHECK(y.value(i) == plain_binary(p, a.value(i), b.value(i)));
    }
  }
}

}  // namespace
}  // namespace edgekit::test
