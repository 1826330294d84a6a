// What the benchmarks of single ops share: operands, options and the clock.
#ifndef EDGEKIT_BENCH_BENCH_OP_H_
#define EDGEKIT_BENCH_BENCH_OP_H_

#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/cpu_features.h"
#include "kernels/op.h"

namespace edgekit::bench {

struct BenchOptions {
  Isa isa = best_isa();
  int threads = 1;
  std::string filter;  // only what has this in its name
};

// Takes `--isa NAME`, `--threads N` or `--filter TEXT` at arguments[i] and moves i past it. False: another option.
bool take_option(int count, char** arguments, int& i, BenchOptions& options);

// A dense view.
TensorView dense(void* data, Dtype dtype, std::initializer_list<int32_t> dims);

// With one thread the CPU time of that thread, so that a busy machine disturbs less; else the time on the wall.
double now_ns(int threads);

// The best time in nanoseconds of one run over 300 ms.
template <typename Run>
double best_ns(int threads, Run&& run) {
  double best = 1e30;
  const double stop = now_ns(threads) + 3e8;
  double begin = now_ns(threads);
  do {
    run();
    const double end = now_ns(threads);
    best = std::min(best, end - begin);
    begin = end;
  } while (begin < stop);
  return best;
}

// The best time of one run of the op. Ends the program with a line when the op refuses its operands.
double best_op_ns(const char* name, const OpDef& op, const OpArgs& args, const BenchOptions& options);

}  // namespace edgekit::bench

#endif  // EDGEKIT_BENCH_BENCH_OP_H_
