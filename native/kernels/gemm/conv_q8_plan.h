// How one conv_q8 is cut into blocks of rows and panels of columns.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/conv_q8_rows.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/op.h"

namespace edgekit {

// Weights beyond a panel's own depth groups (see conv_q8 in the schema); starts is null where there are none.
struct ExcessQ8 {
  const int32_t* starts;  // [panels + 1]
  const int32_t* groups;  // the depth group of each
  int64_t most;           // of one panel
};

struct ConvQ8Plan {
  const GemmQ8Kernel* kernel;
  ConvQ8Source source;
  ExcessQ8 excess;
  int nr, kg;
  int64_t rows;  // output pixels
  int64_t groups;
  int64_t group_columns;  // output channels of one group
  int64_t panels;         // of one group
  int64_t block_rows;     // rows swept by a panel at a time: a multiple of the kernel's mr
  size_t scratch_bytes;   // of one worker
};

ConvQ8Plan plan_conv_q8(const OpArgs& args, Isa isa);

struct ConvQ8Task {
  const ConvQ8Plan& plan;
  const OpArgs& args;
  const RequantizeQ8& requantize;
  std::byte* scratch;
};

// Computes those rows of y for those panels, counted over all groups.
void run_conv_q8_task(const ConvQ8Task& task, Span rows, Span panels);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_
