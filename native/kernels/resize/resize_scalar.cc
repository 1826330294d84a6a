#include "kernels/simd/floats_scalar.h"
// The kernels, on those vectors:
#include "kernels/resize/resize_kernels.inc"
