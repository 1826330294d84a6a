// How one conv_q8 is cut into blocks of rows and panels of columns.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/conv_q8_bands.h"
#include "kernels/gemm/conv_q8_padding.h"
#include "kernels/gemm/conv_q8_way.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/weight_rows.h"
#include "kernels/op.h"

namespace edgekit {

struct ConvQ8Plan {
  const GemmQ8Kernel* kernel;
  bool turned;  // see ConvQ8Way
  ConvQ8Source source;
  WeightRows weight_rows;
  int64_t most_rows;  // of one panel in that list
  ConvQ8Padding padding;
  int nr, kg;
  int64_t rows;  // output pixels
  int64_t groups;
  int64_t group_columns;  // output channels of one group
  int64_t panels;         // of one group
  int64_t block_rows;     // rows swept by a panel at a time: a multiple of the kernel's mr
  int64_t packed_rows;    // how many of them may be packed
  size_t scratch_bytes;   // of one worker
};

ConvQ8Plan plan_conv_q8(const OpArgs& args, Isa isa);

struct ConvQ8Task {
  const ConvQ8Plan& plan;
  const OpArgs& args;
  const RequantizeQ8& requantize;
  const ConvQ8Bands& bands;
  std::byte* scratch;
};

// Computes those rows of y for those panels, counted over all groups.
void run_conv_q8_task(const ConvQ8Task& task, Span rows, Span panels);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_
