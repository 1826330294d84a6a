// Blocked transposition of a plane of 1, 4 or 8-byte elements.
#ifndef EDGEKIT_KERNELS_COPY_TRANSPOSE_H_
#define EDGEKIT_KERNELS_COPY_TRANSPOSE_H_

#include <cstdint>

namespace edgekit {

// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns: x is dense along j, y along i. No overlap, any steps
// in elements, no alignment. element_bytes is 1, 4 or 8.
void transpose_plane(const void* x, int64_t x_step, void* y, int64_t y_step, int64_t rows, int64_t columns,
                     int element_bytes) noexcept;

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_COPY_TRANSPOSE_H_
