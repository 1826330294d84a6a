// Peaks of this machine, for the roofline: multiply-accumulates a second without any memory traffic, and bytes read
// from memory a second. One manifest (kernels.inc) names the kernels.
//
// Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009. Reading follows STREAM (McCalpin), sum instead of triad,
// since inference reads weights far more often than it writes.
#ifndef EDGEKIT_KERNELS_ROOFLINE_ROOFLINE_H_
#define EDGEKIT_KERNELS_ROOFLINE_ROOFLINE_H_

#include <cstdint>

#include "core/status.h"
#include "core/tensor.h"

namespace edgekit {

// Each call does `rounds` rounds of independent multiply-accumulates on registers and returns how many they were.
// int8_macs uses the instructions that give exact sums: what the product kernels can reach at most.
struct RooflineKernels {
  const char* name;
  Isa isa;
  int64_t (*int8_macs)(int64_t rounds) noexcept;
  int64_t (*fp32_macs)(int64_t rounds) noexcept;
};

struct RooflineTable {
  const RooflineKernels* begin_;
  const RooflineKernels* end_;
  const RooflineKernels* begin() const { return begin_; }
  const RooflineKernels* end() const { return end_; }
};

// Every set of kernels of this build, whether or not this CPU can run it.
RooflineTable roofline_kernels();
const RooflineKernels& select_roofline(Isa isa);

// 10^9 multiply-accumulates a second on that many threads; the best of several repetitions of about 20 ms.
double measure_gmac_s(int64_t (*kernel)(int64_t rounds) noexcept, int threads);

// 10^9 bytes a second read from a buffer of that size by that many threads; the best of several passes.
Result<double> measure_read_gb_s(int64_t buffer_bytes, int threads);

#define EK_ROOFLINE(space, isa)               \
  namespace space {                           \
  int64_t int8_macs(int64_t rounds) noexcept; \
  int64_t fp32_macs(int64_t rounds) noexcept; \
  }
#include "kernels/roofline/kernels.inc"
#undef EK_ROOFLINE

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_ROOFLINE_ROOFLINE_H_
