#include "bench/peak.h"

#include <algorithm>
#include <chrono>

#include "core/cpu_features.h"

namespace edgekit::bench {
namespace {

using Loop = double (*)(long);

Loop loop_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kX86Avx2:
      return run_peak_avx2;
    case Isa::kX86Avx512Vnni:
      return run_peak_avx512_vnni;
#elif defined(__aarch64__)
    case Isa::kArmNeon:
      return run_peak_neon;
    case Isa::kArmNeonDotprod:
      return run_peak_neon_dotprod;
#endif
    default:
      return nullptr;
  }
}

}  // namespace

double peak_q8_macs_per_ns(Isa isa) {
  const Loop loop = loop_of(isa);
  if (loop == nullptr || !check_isa_supported(isa).is_ok()) return 0.0;
  double best = 0.0;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const double macs = loop(100000);
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    best = std::max(best, macs / spent.count());
  }
  return best;
}

}  // namespace edgekit::bench
