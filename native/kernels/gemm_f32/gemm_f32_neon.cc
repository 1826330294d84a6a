#include "kernels/simd/floats_neon.h"

namespace edgekit {
namespace neon {
inline constexpr int kTileRows = 8;  // 16 accumulators of 32 registers
}  // namespace neon
}  // namespace edgekit

#include "kernels/gemm_f32/gemm_f32_kernels.inc"
