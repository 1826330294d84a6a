// The reference: any panel width, one element after the other.
#include "kernels/simd/floats_scalar.h"
// Epilogues and depthwise convolution, on single lanes:
#include "kernels/gemm_f32/depthwise.inc"

namespace edgekit {
namespace scalar {
namespace {

constexpr int kScalarRows = 4;

void tile(const GemmBlock& block, int64_t first, int rows) {
  float sums[kScalarRows * kMostPanelColumns];
  const RowSteps steps = block.steps[first / block.tile_rows];
  for (int r = 0; r < rows; ++r) {
    float* row = sums + r * block.nr;
    for (int c = 0; c < block.nr; ++c) row[c] = block.init[(first + r) * block.init_step + c];
    const float* b = block.b;
    for (int64_t run = 0; run < block.lines * block.runs; ++run) {
      const float* a = block.a[first + r] + (block.first_line + run / block.runs) * steps.line +
                       run % block.runs * steps.run + block.offset;
      for (int64_t k = 0; k < block.depth; ++k, b += block.b_step) {
        for (int c = 0; c < block.nr; ++c) row[c] = fma(a[k], b[c], row[c]);
      }
    }
  }
  if (block.partial == nullptr) return finish_tile(block, first, rows, sums);
  std::memcpy(block.partial + first * block.nr, sums, static_cast<size_t>(rows * block.nr) * sizeof(float));
}

void block(const GemmBlock& block) noexcept {
  for (int64_t first = 0; first < block.rows; first += block.tile_rows) {
    const int64_t rest = block.rows - first;
    tile(block, first, rest < block.tile_rows ? static_cast<int>(rest) : block.tile_rows);
  }
}

constexpr GemmF32Kernels kGemmF32Kernels = {0, kScalarRows, block, depthwise};

}  // namespace

const GemmF32Kernels& gemm_f32_kernels() { return kGemmF32Kernels; }

}  // namespace scalar
}  // namespace edgekit
