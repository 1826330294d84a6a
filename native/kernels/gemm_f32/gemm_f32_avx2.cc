#include "kernels/simd/floats_avx2.h"

namespace edgekit {
namespace avx2 {
inline constexpr int kTileRows = 6;  // 12 accumulators, a row of b and a value of a in 16 registers
}  // namespace avx2
}  // namespace edgekit

#include "kernels/gemm_f32/gemm_f32_kernels.inc"
