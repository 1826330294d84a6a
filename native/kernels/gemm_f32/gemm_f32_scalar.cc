// The reference: any panel width, one element after the other.
#include "kernels/simd/floats_scalar.h"
// Epilogues, on single lanes:
#include "kernels/gemm_f32/epilogue.inc"

namespace edgekit {
namespace scalar {
namespace {

constexpr int kScalarRows = 4;

void tile(const GemmTile& tile) noexcept {
  float sums[kScalarRows * kMostPanelColumns];
  for (int r = 0; r < tile.rows; ++r) {
    float* row = sums + r * tile.nr;
    for (int c = 0; c < tile.nr; ++c) row[c] = tile.init[r * tile.init_step + c];
    const float* b = tile.b;
    for (int64_t run = 0; run < tile.runs; ++run) {
      const float* a = tile.a[r] + tile.a_offset + run * tile.a_run_step;
      for (int64_t k = 0; k < tile.depth; ++k, b += tile.b_step) {
        for (int c = 0; c < tile.nr; ++c) row[c] = fma(a[k], b[c], row[c]);
      }
    }
  }
  if (tile.partial == nullptr) return finish_rows(tile, sums);
  std::memcpy(tile.partial, sums, static_cast<size_t>(tile.rows * tile.nr) * sizeof(float));
}

constexpr GemmF32Kernels kGemmF32Kernels = {0, kScalarRows, tile, depthwise};

}  // namespace

const GemmF32Kernels& gemm_f32_kernels() { return kGemmF32Kernels; }

}  // namespace scalar
}  // namespace edgekit
