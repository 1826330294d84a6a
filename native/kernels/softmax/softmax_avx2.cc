#include "kernels/simd/floats_avx2.h"
// The kernels, on those vectors:
#include "kernels/softmax/softmax_kernels.inc"
