// What one core can do at best, measured: loops of nothing but the multiply-accumulate instructions of a kernel.
#ifndef EDGEKIT_BENCH_PEAK_H_
#define EDGEKIT_BENCH_PEAK_H_

#include "program_schema.h"

namespace edgekit::bench {

// INT8 multiply-accumulates a nanosecond of one core with the instructions of `isa`; 0 where there are none here.
double peak_q8_macs_per_ns(Isa isa);

// One loop each: multiply-accumulates done in `rounds` rounds. Each in the file peak_<isa>.cc of its instruction set.
double run_peak_avx2(long rounds);
double run_peak_avx512_vnni(long rounds);
double run_peak_neon(long rounds);
double run_peak_neon_dotprod(long rounds);

}  // namespace edgekit::bench

#endif  // EDGEKIT_BENCH_PEAK_H_
