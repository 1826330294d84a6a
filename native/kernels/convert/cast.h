// Plain casts between any two dtypes, as C does them; f32 to an integer truncates and saturates (NaN gives 0), anything
// to bool is x != 0.
#ifndef EDGEKIT_KERNELS_CONVERT_CAST_H_
#define EDGEKIT_KERNELS_CONVERT_CAST_H_

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace edgekit {

// n elements; strides in elements of each side. No overlap.
struct CastRow {
  const std::byte* x;
  int64_t x_stride;
  std::byte* y;
  int64_t y_stride;
  int64_t n;
};

using CastRowFn = void (*)(const CastRow& row);

CastRowFn select_cast(Dtype from, Dtype to);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_CONVERT_CAST_H_
