#include "kernels/simd/floats_neon.h"
// The kernels, on those vectors:
#include "kernels/elementwise/elementwise_kernels.inc"
