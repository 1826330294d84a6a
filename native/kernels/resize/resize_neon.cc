#include "kernels/simd/floats_neon.h"
// The kernels, on those vectors:
#include "kernels/resize/resize_kernels.inc"
