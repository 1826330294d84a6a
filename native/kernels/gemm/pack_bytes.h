// Copies rows of A as they are: for kernels that read bytes.
#ifndef EDGEKIT_KERNELS_GEMM_PACK_BYTES_H_
#define EDGEKIT_KERNELS_GEMM_PACK_BYTES_H_

#include <cstdint>
#include <cstring>

namespace edgekit {

struct ByteCopy {
  using Element = uint8_t;
  static void run(uint8_t* out, const uint8_t* in, int64_t count, const uint8_t*) {
    std::memcpy(out, in, static_cast<size_t>(count));
  }
  static void fill(uint8_t* out, int32_t value, int64_t count) {
    std::memset(out, value & 0xff, static_cast<size_t>(count));
  }
};

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_PACK_BYTES_H_
