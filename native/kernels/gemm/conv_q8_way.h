// The ways to run a conv_q8 (OpDef::ways): which of them is fastest depends on the caches of the CPU and on how its
// threads share them, so `edgekit tune` measures them.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_WAY_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_WAY_H_

#include <cstdint>
#include <string>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/op.h"

namespace edgekit {

struct ConvQ8Way {
  const GemmQ8Kernel* kernel;
  int64_t block_bytes;  // of A, that a panel of B sweeps over
  bool bands;           // where there are bands: taps outside of the image are skipped
  bool turned;          // threads share columns where they would share rows, and the other way round
};

const GemmQ8Kernel& conv_q8_kernel(const OpArgs& args, Isa isa);
ConvQ8Way conv_q8_way(const OpArgs& args, Isa isa);
int conv_q8_ways(const OpArgs& args, int threads, Isa isa);
std::string conv_q8_way_name(const OpArgs& args, Isa isa);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_WAY_H_
