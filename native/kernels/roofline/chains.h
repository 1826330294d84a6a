// Ten independent sums in registers, for the peak kernels: enough to hide a latency of 5 at two a cycle. They are
// variables, not an array, since compilers keep arrays that an asm statement refers to in memory.
#ifndef EDGEKIT_KERNELS_ROOFLINE_CHAINS_H_
#define EDGEKIT_KERNELS_ROOFLINE_CHAINS_H_

// Declares the sums s0 .. s9 of a type, zeroed.
#define EK_CHAINS(type) \
  type s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{}, s8{}, s9 {}

// Does step(sum) to each.
#define EK_EACH_CHAIN(step) step(s0) step(s1) step(s2) step(s3) step(s4) step(s5) step(s6) step(s7) step(s8) step(s9)

// Multiply-accumulates of one round, with that many lanes a sum.
#define EK_CHAIN_MACS(lanes) (10 * (lanes))

#endif  // EDGEKIT_KERNELS_ROOFLINE_CHAINS_H_
