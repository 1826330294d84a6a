// How one conv_q8 is cut into blocks of rows and panels of columns.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/op.h"

namespace edgekit {

struct ConvQ8Plan {
  const GemmQ8Kernel* kernel;
  ConvQ8Source source;
  int nr, kg;
  int64_t rows;  // output pixels
  int64_t groups;
  int64_t group_columns;  // output channels of one group
  int64_t panels;         // of one group
  int64_t panel_bytes;
  int64_t block_rows;    // rows packed at a time: a multiple of the kernel's mr
  bool in_place;         // rows of x serve as rows of A, where reading to the padded depth stays inside x
  size_t scratch_bytes;  // of one worker
};

ConvQ8Plan plan_conv_q8(const OpArgs& args, Isa isa);

struct Span {
  int64_t begin, end;
};

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
