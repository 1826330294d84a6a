// The loops of a reduction: over what is kept, and inside over what is reduced.
#ifndef EDGEKIT_KERNELS_REDUCE_REDUCE_LOOPS_H_
#define EDGEKIT_KERNELS_REDUCE_REDUCE_LOOPS_H_

#include <cstdint>

#include "core/tensor.h"
#include "kernels/loop_nest.h"

namespace edgekit {

// Loops of x and y over the kept axes and of x alone over the reduced ones, in their order.
struct ReduceLoops {
  LoopNest<2> kept;
  LoopNest<1> reduced;
  int64_t reduced_count() const { return reduced.run_count() * reduced.run_length(); }
};

inline ReduceLoops reduce_loops(const TensorView& x, const TensorView& y, uint32_t axes_mask) {
  ReduceLoops loops;
  for (int i = 0; i < x.rank; ++i) {
    if ((axes_mask >> i & 1) != 0) {
      const int64_t stride[1] = {x.strides[i]};
      append_loop(loops.reduced, x.dims[i], stride);
    } else {
      const int64_t strides[2] = {x.strides[i], y.strides[i]};
      append_loop(loops.kept, x.dims[i], strides);
    }
  }
  return loops;
}

// Kept elements are reduced this many at a time: their accumulators stay in the first-level cache, and the steps of
// different elements don't wait for each other.
inline constexpr int64_t kReduceBlock = 64;

// For a block of `count` kept elements in steps of `step` from x: calls update(block_index, value) for each reduced
// element in ascending order.
template <typename T, typename Update>
void for_each_reduced(const LoopNest<1>& reduced, const T* x, int64_t step, int64_t count, Update&& update) {
  const int64_t length = reduced.run_length(), stride = reduced.run_stride(0);
  for_each_run(reduced, 0, reduced.run_count(), [&](const int64_t(&at)[1]) {
    const T* run = x + at[0];
    if (step == 1) {
      for (int64_t r = 0; r < length; ++r) {
        for (int64_t j = 0; j < count; ++j) update(j, run[r * stride + j]);
      }
    } else {
      for (int64_t r = 0; r < length; ++r) {
        for (int64_t j = 0; j < count; ++j) update(j, run[r * stride + j * step]);
      }
    }
  });
}

// Calls body(x, y, count) for blocks of kept elements, in parallel; x and y are offsets of the block's first element.
// Not inlined: compiled once rather than once an operator and type.
[[gnu::noinline]] inline void parallel_blocks(RunContext& context, const ReduceLoops& loops,
                                              FunctionRef<void(int64_t x, int64_t y, int64_t count)> body) {
  const int64_t x_step = loops.kept.run_stride(0), y_step = loops.kept.run_stride(1);
  // Elements far apart each pull in a cache line of their own, so take fewer of them at a time.
  const int64_t block = x_step == 1 ? kReduceBlock : 8;
  const double element_ns = static_cast<double>(loops.reduced_count()) * (x_step == 1 ? 0.5 : 1.0);
  parallel_runs(context, loops.kept, element_ns, [&](const int64_t(&at)[2], int64_t length) {
    for (int64_t first = 0; first < length; first += block) {
      body(at[0] + first * x_step, at[1] + first * y_step, std::min(block, length - first));
    }
  });
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_REDUCE_REDUCE_LOOPS_H_
