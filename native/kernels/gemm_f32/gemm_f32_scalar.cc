// The reference: any panel width, one element after the other.
#include "kernels/simd/floats_scalar.h"
// Epilogues, on single lanes:
#include "kernels/gemm_f32/epilogue.inc"

namespace edgekit {
namespace scalar {
namespace {

void tile(const GemmTile& tile, float* out) noexcept {
  for (int r = 0; r < tile.rows; ++r) {
    float* sums = out + r * tile.nr;
    for (int c = 0; c < tile.nr; ++c) sums[c] = tile.init[c];
    for (int64_t k = 0; k < tile.depth; ++k) {
      const float* b = tile.b + k * tile.b_step;
      for (int c = 0; c < tile.nr; ++c) sums[c] = fma(tile.a[r][k], b[c], sums[c]);
    }
  }
}

constexpr GemmF32Kernels kGemmF32Kernels = {0, 4, tile, finish, depthwise};

}  // namespace

const GemmF32Kernels& gemm_f32_kernels() { return kGemmF32Kernels; }

}  // namespace scalar
}  // namespace edgekit
