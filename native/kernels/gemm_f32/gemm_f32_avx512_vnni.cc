#include "kernels/simd/floats_avx512_vnni.h"

namespace edgekit {
namespace avx512_vnni {
inline constexpr int kTileRows = 12;  // 24 accumulators of 32 registers
}  // namespace avx512_vnni
}  // namespace edgekit

#include "kernels/gemm_f32/gemm_f32_kernels.inc"
