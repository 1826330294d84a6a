// TensorView: a typed, strided window on memory that somebody else owns.
#ifndef EDGEKIT_CORE_TENSOR_H_
#define EDGEKIT_CORE_TENSOR_H_

#include <cstddef>
#include <cstdint>

#include "program_schema.h"  // generated: enum class Dtype, kMaxRank, records, attribute structs

namespace edgekit {

struct TensorView {
  void* data = nullptr;  // of element [0, ..., 0]
  Dtype dtype = Dtype::kF32;
  int rank = 0;
  int32_t dims[kMaxRank] = {};     // each >= 1
  int64_t strides[kMaxRank] = {};  // in elements; 0 broadcasts, negative runs backwards
  int32_t zero_point = 0;
  float scale = 0.0f;  // 0: not quantized

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t element_count() const {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }
  // True when the elements lie one after the other in row-major order (extents of 1 have no stride to respect).
  bool is_dense() const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (dims[i] != 1 && strides[i] != expected) return false;
      expected *= dims[i];
    }
    return true;
  }
};

inline int dtype_bytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
    case Dtype::kI32:
      return 4;
    case Dtype::kI64:
      return 8;
    default:
      return 1;
  }
}

}  // namespace edgekit

#endif  // EDGEKIT_CORE_TENSOR_H_
