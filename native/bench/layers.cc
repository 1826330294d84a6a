#include "bench/layers.h"

#include <algorithm>
#include <cstdio>

namespace edgekit::bench {

const IsaPacking& packing_of(Isa isa) {
  return *std::find_if(std::begin(kIsaPacking), std::end(kIsaPacking),
                       [isa](const IsaPacking& row) { return row.isa == isa; });
}

double peak_macs_per_ns(int64_t (*kernel)(int64_t rounds) noexcept, int threads) {
  constexpr int64_t kRounds = 100000;
  int64_t macs = 0;
  const double ns = best_ns(1, [&] { macs = kernel(kRounds); });
  return static_cast<double>(macs) / ns * threads;
}

void print_layer_head(const BenchOptions& options, double peak) {
  std::printf("%s, %d thread(s), peak %.1f GMAC/s\n", name_of(options.isa), options.threads, peak);
  std::printf("%-32s %10s %9s %7s\n", "layer", "us", "GMAC/s", "% peak");
}

void print_layer(const Layer& layer, double ns, double peak) {
  const double rate = layer.macs() / ns;
  std::printf("%-32s %10.1f %9.1f %7.1f\n", layer.name, ns / 1e3, rate, peak > 0 ? 100 * rate / peak : 0.0);
}

}  // namespace edgekit::bench
