// The convolutions of real networks that the benchmarks time (layers.inc) and what their tables have in common.
#ifndef EDGEKIT_BENCH_LAYERS_H_
#define EDGEKIT_BENCH_LAYERS_H_

#include "bench/bench_op.h"

namespace edgekit::bench {

struct Layer {
  const char* name;
  bool depthwise;
  int size, channels, out_channels, kernel, stride;

  int out_size() const { return (size + stride - 1) / stride; }
  int pad() const { return kernel / 2; }
  int depth() const { return kernel * kernel * (depthwise ? 1 : channels); }
  double macs() const { return static_cast<double>(out_size()) * out_size() * out_channels * depth(); }
};

inline constexpr Layer kLayers[] = {
#define EK_LAYER(name, size, channels, out_channels, kernel, stride) \
  {name, false, size, channels, out_channels, kernel, stride},
#define EK_DEPTHWISE_LAYER(name, size, channels, kernel, stride) {name, true, size, channels, channels, kernel, stride},
#include "bench/layers.inc"
#undef EK_LAYER
#undef EK_DEPTHWISE_LAYER
};

// How weights are packed for an instruction set.
const IsaPacking& packing_of(Isa isa);

// What the cores can do at best by a kernel of the roofline family, in multiply-accumulates a nanosecond, timed as the
// layers are: one core times threads.
double peak_macs_per_ns(int64_t (*kernel)(int64_t rounds) noexcept, int threads);

// The table's head and one row of it.
void print_layer_head(const BenchOptions& options, double peak);
void print_layer(const Layer& layer, double ns, double peak);

}  // namespace edgekit::bench

#endif  // EDGEKIT_BENCH_LAYERS_H_
