// LoopNest: the loops over several strided operands of equal dims, with as few of them as the strides allow.
#ifndef EDGEKIT_KERNELS_LOOP_NEST_H_
#define EDGEKIT_KERNELS_LOOP_NEST_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/function_ref.h"
#include "core/tensor.h"
#include "kernels/parallel.h"

namespace edgekit {

// Loops over N operands. dims[rank - 1] is the innermost loop ("run"); rank is at least 1.
template <int N>
struct LoopNest {
  int rank = 1;
  int64_t dims[kMaxRank] = {1};
  int64_t strides[N][kMaxRank] = {};  // in elements of each operand

  int64_t run_length() const { return dims[rank - 1]; }
  int64_t run_stride(int operand) const { return strides[operand][rank - 1]; }
  int64_t run_count() const {
    int64_t count = 1;
    for (int i = 0; i + 1 < rank; ++i) count *= dims[i];
    return count;
  }
};

// Adds the loop over `extent` inside all loops already there: skipped if it has one step, and merged into the innermost
// one if every operand walks on in the same steps.
template <int N>
void append_loop(LoopNest<N>& nest, int64_t extent, const int64_t (&strides)[N]) {
  if (extent == 1) return;
  const bool first = nest.rank == 1 && nest.dims[0] == 1;
  bool merges = !first;
  for (int n = 0; merges && n < N; ++n) merges = nest.strides[n][nest.rank - 1] == strides[n] * extent;
  if (merges) {
    nest.dims[nest.rank - 1] *= extent;
  } else {
    if (!first) ++nest.rank;
    nest.dims[nest.rank - 1] = extent;
  }
  for (int n = 0; n < N; ++n) nest.strides[n][nest.rank - 1] = strides[n];
}

// The loops over views of equal dims, in their order.
template <int N>
LoopNest<N> collapse(const TensorView* const (&views)[N]) {
  LoopNest<N> nest;
  for (int i = 0; i < views[0]->rank; ++i) {
    int64_t strides[N];
    for (int n = 0; n < N; ++n) strides[n] = views[n]->strides[i];
    append_loop(nest, views[0]->dims[i], strides);
  }
  return nest;
}

// The same for work whose order is free: loops are ordered by the stride of operand `leader`, so that its memory is
// walked through in order whatever the order of dims (a permuted view of dense memory becomes dense again).
template <int N>
LoopNest<N> collapse_by(const TensorView* const (&views)[N], int leader) {
  const TensorView& leading = *views[leader];
  int order[kMaxRank];
  for (int i = 0; i < leading.rank; ++i) {  // insertion sort: stable, and allocates nothing
    int place = i;
    for (; place > 0 && std::abs(leading.strides[order[place - 1]]) < std::abs(leading.strides[i]); --place) {
      order[place] = order[place - 1];
    }
    order[place] = i;
  }
  LoopNest<N> nest;
  for (int i = 0; i < leading.rank; ++i) {
    int64_t strides[N];
    for (int n = 0; n < N; ++n) strides[n] = views[n]->strides[order[i]];
    append_loop(nest, leading.dims[order[i]], strides);
  }
  return nest;
}

// By the last operand, the output.
template <int N>
LoopNest<N> collapse_by_output(const TensorView* const (&views)[N]) {
  return collapse_by(views, N - 1);
}

// Calls body(const int64_t (&offsets)[N]) for the runs [begin, end) in order; offsets are elements from each base.
template <int N, typename Body>
void for_each_run(const LoopNest<N>& nest, int64_t begin, int64_t end, Body&& body) {
  int64_t index[kMaxRank] = {};
  int64_t offsets[N] = {};
  int64_t rest = begin;
  for (int i = nest.rank - 2; i >= 0; --i) {
    index[i] = rest % nest.dims[i];
    rest /= nest.dims[i];
    for (int n = 0; n < N; ++n) offsets[n] += index[i] * nest.strides[n][i];
  }
  for (int64_t run = begin; run < end; ++run) {
    body(offsets);
    for (int i = nest.rank - 2; i >= 0; --i) {
      for (int n = 0; n < N; ++n) offsets[n] += nest.strides[n][i];
      if (++index[i] < nest.dims[i]) break;
      index[i] = 0;
      for (int n = 0; n < N; ++n) offsets[n] -= nest.dims[i] * nest.strides[n][i];
    }
  }
}

// What parallel_runs calls for a piece of a run: offsets are elements from each base, count is never more than the run.
template <int N>
using RunBody = FunctionRef<void(const int64_t (&offsets)[N], int64_t count)>;

// All runs on several threads. A nest of few long runs is cut inside its runs. Compiled once for each N: see
// function_ref.h.
template <int N>
[[gnu::noinline]] void share_runs(RunContext& context, const LoopNest<N>& nest, double element_ns, RunBody<N> body) {
  const int64_t runs = nest.run_count();
  const int64_t length = nest.run_length();
  if (runs >= 4 * static_cast<int64_t>(context.threads)) {
    parallel_for(context, runs, static_cast<double>(length) * element_ns, [&](int64_t begin, int64_t end, int) {
      for_each_run(nest, begin, end, [&](const int64_t(&offsets)[N]) { body(offsets, length); });
    });
    return;
  }
  constexpr int64_t kGrain = 64;  // pieces start on multiples of it, so that vectors and cache lines stay whole
  const int64_t grains = (length + kGrain - 1) / kGrain;
  parallel_for(context, grains, static_cast<double>(runs * kGrain) * element_ns, [&](int64_t begin, int64_t end, int) {
    const int64_t first = begin * kGrain;
    const int64_t count = std::min(end * kGrain, length) - first;
    for_each_run(nest, 0, runs, [&](const int64_t(&offsets)[N]) {
      int64_t at[N];
      for (int n = 0; n < N; ++n) at[n] = offsets[n] + first * nest.run_stride(n);
      body(at, count);
    });
  });
}

// share_runs for any callable void(const int64_t (&offsets)[N], int64_t count).
template <int N, typename Body>
void parallel_runs(RunContext& context, const LoopNest<N>& nest, double element_ns, Body&& body) {
  share_runs<N>(context, nest, element_ns, RunBody<N>(body));
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_LOOP_NEST_H_
