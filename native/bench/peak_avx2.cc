// vpmaddwd and vpaddd, two a sum, as in the 6x16 tile; written out, so that no compiler moves a register.
#include "bench/peak.h"

namespace edgekit::bench {

double run_peak_avx2(long rounds) {
  long left = rounds;
  asm volatile(
      "1:\n"
      ".irp sum, 0, 2, 4, 6, 8, 10\n"
      "vpmaddwd %%ymm12, %%ymm13, %%ymm14\n"
      "vpmaddwd %%ymm12, %%ymm13, %%ymm15\n"
      "vpaddd %%ymm14, %%ymm\\sum, %%ymm\\sum\n"
      "vpaddd %%ymm15, %%ymm\\sum, %%ymm\\sum\n"
      ".endr\n"
      "dec %0\n"
      "jnz 1b\n"
      : "+r"(left)
      :
      : "xmm0", "xmm2", "xmm4", "xmm6", "xmm8", "xmm10", "xmm12", "xmm13", "xmm14", "xmm15", "cc");
  return static_cast<double>(rounds) * 12 * 16;
}

}  // namespace edgekit::bench
