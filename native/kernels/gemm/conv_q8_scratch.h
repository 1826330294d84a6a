// What one worker of a conv_q8 keeps while it runs.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_SCRATCH_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_SCRATCH_H_

#include <cstdint>

#include "kernels/carver.h"
#include "kernels/gemm/conv_q8_plan.h"

namespace edgekit {

struct BlockScratch {
  ConvQ8Rows rows;
  uint8_t* copy;           // of a part of x, see ConvQ8Padding
  int64_t* direct_groups;  // where depth groups lie in rows of either kind
  int64_t* packed_groups;
  int64_t* b_groups;        // where they lie in a panel of B
  int64_t* direct_offsets;  // where those of a panel's list of rows do
  int64_t* packed_offsets;
  int32_t* bias;  // of a panel that is not full, and its scale
  float* scale;
};

inline BlockScratch carve(const ConvQ8Plan& plan, Carver& carver) {
  BlockScratch s{};
  s.rows.most = plan.block_rows;
  s.rows.most_packed = plan.packed_rows;
  s.rows.packed = carver.take<uint8_t>(plan.packed_rows * plan.source.row_bytes());
  s.copy = carver.take<uint8_t>(plan.padding.bytes);
  s.rows.at.a = carver.take<const uint8_t*>(plan.block_rows);
  s.rows.at.y = carver.take<uint8_t*>(plan.block_rows);
  s.rows.at.residual = carver.take<const uint8_t*>(plan.block_rows);
  const int64_t groups = plan.source.depth_groups();
  s.direct_groups = carver.take<int64_t>(groups);
  s.packed_groups = carver.take<int64_t>(groups);
  s.direct_offsets = carver.take<int64_t>(plan.most_rows);
  s.packed_offsets = carver.take<int64_t>(plan.most_rows);
  s.bias = carver.take<int32_t>(plan.nr);
  s.scale = carver.take<float>(plan.nr);
  return s;
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_SCRATCH_H_
