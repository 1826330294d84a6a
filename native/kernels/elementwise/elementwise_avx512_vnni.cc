#include "kernels/simd/floats_avx512_vnni.h"
// The kernels, on those vectors:
#include "kernels/elementwise/elementwise_kernels.inc"
