// The kernel family that contributors start from: compiles, and each of its kernels equals the scalar one.
#include "kernels/_skeleton/skeleton.h"

#include <algorithm>

#include "core/cpu_features.h"
#include "kernels/op.h"
#include "tests/check.h"
#include "tests/q8_memory.h"

namespace edgekit {
extern const OpDef kSkeletonOp;
}  // namespace edgekit

namespace edgekit::test {
namespace {

struct Rows {
  GuardedBuffer a, b, y;
  explicit Rows(int n) : a(static_cast<size_t>(n)), b(static_cast<size_t>(n)), y(static_cast<size_t>(n)) {
    Random random(static_cast<uint64_t>(n));
    for (int i = 0; i < n; ++i) a.as<uint8_t>()[i] = static_cast<uint8_t>(random.next());
    for (int i = 0; i < n; ++i) b.as<uint8_t>()[i] = static_cast<uint8_t>(random.next());
  }
  bool right(int n) {
    for (int i = 0; i < n; ++i) {
      if (y.as<uint8_t>()[i] != std::min(a.as<uint8_t>()[i] + b.as<uint8_t>()[i], 255)) return false;
    }
    return true;
  }
};

EK_TEST(every_kernel) {
  for (const SkeletonKernel& kernel : skeleton_kernels()) {
    if (!check_isa_supported(kernel.isa).is_ok()) continue;
    for (int n = 1; n <= 100; ++n) {
      Rows rows(n);
      kernel.add_row({rows.a.as<uint8_t>(), rows.b.as<uint8_t>(), rows.y.as<uint8_t>(), n});
      EK_CHECK_MSG(rows.right(n), std::string(kernel.name) + " n=" + std::to_string(n));
    }
  }
}

EK_TEST(op) {
  constexpr int kCount = 200000;
  Rows rows(kCount);
  TensorView views[3];
  void* const data[] = {rows.a.as<void>(), rows.b.as<void>(), rows.y.as<void>()};
  for (int i = 0; i < 3; ++i) {
    views[i].data = data[i];
    views[i].dtype = Dtype::kU8;
    views[i].rank = 1;
    views[i].dims[0] = kCount;
    views[i].strides[0] = 1;
  }
  const TensorView* inputs[] = {&views[0], &views[1]};
  const TensorView* outputs[] = {&views[2]};
  const OpArgs args{inputs, 2, outputs, 1, nullptr};
  EK_CHECK(kSkeletonOp.check(args).is_ok());
  RunContext context{ThreadPool::process(), 2, nullptr, best_isa()};
  EK_CHECK(kSkeletonOp.run(args, context).is_ok());
  EK_CHECK(rows.right(kCount));
  views[1].dims[0] = kCount - 1;
  EK_CHECK(!kSkeletonOp.check(args).is_ok());
}

}  // namespace
}  // namespace edgekit::test
