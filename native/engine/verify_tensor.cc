#include "engine/verify_tensor.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/tensor.h"

namespace edgekit {
namespace {

constexpr int64_t kStrideLimit = static_cast<int64_t>(kLimitArenaBytes);

bool zero_point_fits(const TensorRecord& tensor) {
  switch (static_cast<Dtype>(tensor.dtype)) {
    case Dtype::kS8:
      return tensor.zero_point >= -128 && tensor.zero_point <= 127;
    case Dtype::kU8:
      return tensor.zero_point >= 0 && tensor.zero_point <= 255;
    default:
      return true;
  }
}

// Whether every element lies inside the buffer. Dims are at least 1 and |strides| at most kStrideLimit.
bool inside(const TensorRecord& tensor, uint64_t buffer_bytes) {
  int64_t lowest = 0, highest = 0;  // in elements
  for (int i = 0; i < tensor.rank; ++i) {
    int64_t reach;
    if (__builtin_mul_overflow(int64_t{tensor.dims[i]} - 1, tensor.strides[i], &reach)) return false;
    int64_t* end = reach < 0 ? &lowest : &highest;
    if (__builtin_add_overflow(*end, reach, end)) return false;
  }
  const int64_t element_bytes = dtype_bytes(static_cast<Dtype>(tensor.dtype));
  int64_t before, after, count;
  if (__builtin_mul_overflow(lowest, -element_bytes, &before) || __builtin_add_overflow(highest, 1, &count) ||
      __builtin_mul_overflow(count, element_bytes, &after)) {
    return false;
  }
  return tensor.offset_bytes <= buffer_bytes && static_cast<uint64_t>(before) <= tensor.offset_bytes &&
         static_cast<uint64_t>(after) <= buffer_bytes - tensor.offset_bytes;
}

}  // namespace

std::string_view tensor_problem(const TensorRecord& tensor, uint64_t buffer_bytes, bool strict) {
  if (tensor.dtype >= kDtypeCount) return "unknown dtype";
  if (tensor.rank > kMaxRank) return "rank is too great";
  if (!std::isfinite(tensor.scale) || tensor.scale < 0) return "scale is negative or not finite";
  if (!zero_point_fits(tensor)) return "zero point is outside its dtype";
  int64_t elements = 1;
  for (int i = 0; i < kMaxRank; ++i) {
    if (i >= tensor.rank) {
      if (tensor.dims[i] != 0) return "a dim beyond the rank is set";
      continue;
    }
    if (tensor.dims[i] < 1) return "a dim is less than 1";
    if (tensor.strides[i] > kStrideLimit || tensor.strides[i] < -kStrideLimit) return "a stride is too great";
    elements *= tensor.dims[i];
    if (elements > INT32_MAX) return "has too many elements";
  }
  if (strict && (tensor.reserved != 0 || tensor.reserved_dims[0] != 0 || tensor.reserved_dims[1] != 0 ||
                 tensor.reserved_strides[0] != 0)) {
    return "reserved field is not 0";
  }
  if (tensor.offset_bytes % static_cast<uint64_t>(dtype_bytes(static_cast<Dtype>(tensor.dtype))) != 0) {
    return "offset is misaligned";
  }
  if (!inside(tensor, buffer_bytes)) return "lies outside its buffer";
  return {};
}

bool fills_buffer(const TensorRecord& tensor, uint64_t buffer_bytes) {
  int64_t expected = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.dims[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.dims[i];
  }
  const uint64_t bytes = static_cast<uint64_t>(expected * dtype_bytes(static_cast<Dtype>(tensor.dtype)));
  return tensor.offset_bytes == 0 && bytes == buffer_bytes;
}

bool overlaps_itself(const TensorRecord& tensor) {
  struct Axis {
    int64_t stride, dim;
  };
  Axis axes[kMaxRank];  // of more than one element, by ascending |stride|
  int count = 0;
  for (int i = 0; i < tensor.rank; ++i) {
    if (tensor.dims[i] == 1) continue;
    const Axis axis = {std::abs(tensor.strides[i]), tensor.dims[i]};
    int at = count++;
    for (; at > 0 && axes[at - 1].stride > axis.stride; --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  int64_t reach = 0;  // greatest distance between two elements over the axes so far
  for (int i = 0; i < count; ++i) {
    if (axes[i].stride <= reach) return true;
    reach += axes[i].stride * (axes[i].dim - 1);
  }
  return false;
}

}  // namespace edgekit
