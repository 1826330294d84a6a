// Checks on operands that ops share in their check() functions: each gives kInvalidProgram with one line naming the
// operand, what it is and what it had to be.
#ifndef EDGEKIT_KERNELS_OPERAND_CHECK_H_
#define EDGEKIT_KERNELS_OPERAND_CHECK_H_

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace edgekit {

// A kInvalidProgram status with a printf-formatted message.
[[gnu::format(printf, 1, 2)]] Status invalid(const char* format, ...);

inline bool is_q8(Dtype dtype) { return dtype == Dtype::kU8 || dtype == Dtype::kS8; }
bool same_dims(const TensorView& a, const TensorView& b);

Status expect_dtype(const char* name, const TensorView& view, Dtype dtype);
Status expect_q8(const char* name, const TensorView& view);
Status expect_same_dtype(const char* name_a, const TensorView& a, const char* name_b, const TensorView& b);
Status expect_same_dims(const char* name_a, const TensorView& a, const char* name_b, const TensorView& b);
Status expect_rank(const char* name, const TensorView& view, int least, int greatest);

// [N, H, W, C] with stride 1 on C when C > 1.
Status expect_image(const char* name, const TensorView& view);

// Dense, of that dtype, with `count` elements along one dim.
Status expect_vector(const char* name, const TensorView& view, Dtype dtype, int64_t count);

// Dense constants of the given dims.
Status expect_dense(const char* name, const TensorView& view, Dtype dtype, const int64_t* dims, int rank);

// Its data is there when check() runs: prepare() may read it.
Status expect_constant(const char* name, const TensorView& view);

Status expect_in_range(const char* name, int64_t value, int64_t least, int64_t greatest);

// Every element of y has its own place: no stride of 0 along an extent above 1. Two threads would race otherwise.
Status expect_writable(const char* name, const TensorView& view);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_OPERAND_CHECK_H_
