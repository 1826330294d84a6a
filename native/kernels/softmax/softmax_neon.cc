#include "kernels/simd/floats_neon.h"
// The kernels, on those vectors:
#include "kernels/softmax/softmax_kernels.inc"
