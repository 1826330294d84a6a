// The instruction that *_avx_vnni.cc files are for. Only for them.
#ifndef EDGEKIT_KERNELS_SIMD_DOT_AVX_VNNI_H_
#define EDGEKIT_KERNELS_SIMD_DOT_AVX_VNNI_H_

#include <immintrin.h>

namespace edgekit::avx_vnni {

// sums += four products of u8 and s8 in each lane, exactly. As assembly, since GCC 12 spills the sums of the intrinsic;
// in VEX, since these CPUs may lack the encoding of AVX-512. The portable build for tests has the intrinsic.
inline __attribute__((always_inline)) void dot_add(__m256i& sums, __m256i u8, __m256i s8) {
#if defined(EDGEKIT_SIMDE)
  sums = _mm256_dpbusd_epi32(sums, u8, s8);
#else
  asm("%{vex%} vpdpbusd %[b], %[a], %[sums]" : [sums] "+x"(sums) : [a] "x"(u8), [b] "x"(s8));
#endif
}

}  // namespace edgekit::avx_vnni

#endif  // EDGEKIT_KERNELS_SIMD_DOT_AVX_VNNI_H_
