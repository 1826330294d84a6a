// Strided runs of floats in dense pieces that stay in the first-level cache.
#ifndef EDGEKIT_KERNELS_ELEMENTWISE_STAGED_RUN_H_
#define EDGEKIT_KERNELS_ELEMENTWISE_STAGED_RUN_H_

#include <algorithm>
#include <cstdint>

namespace edgekit {

inline constexpr int64_t kStageElements = 256;

// The `count` elements from `base` in steps of `stride` as a dense array: the memory itself, or a copy in `stage`.
template <typename T>
inline const T* stage_in(const T* base, int64_t stride, int64_t count, T* stage) {
  if (stride == 1 || count == 1) return base;
  if (stride == 0) {
    std::fill_n(stage, count, *base);
  } else {
    for (int64_t i = 0; i < count; ++i) stage[i] = base[i * stride];
  }
  return stage;
}

// Where a dense result of `count` elements goes first; stage_out() then brings it to its place.
template <typename T>
inline T* stage_for(T* base, int64_t stride, int64_t count, T* stage) {
  return stride == 1 || count == 1 ? base : stage;
}

template <typename T>
inline void stage_out(const T* dense, T* base, int64_t stride, int64_t count) {
  if (dense == base) return;
  for (int64_t i = 0; i < count; ++i) base[i * stride] = dense[i];
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_ELEMENTWISE_STAGED_RUN_H_
