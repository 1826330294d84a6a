#include "kernels/simd/floats_scalar.h"
// The kernels, on those vectors:
#include "kernels/elementwise/elementwise_kernels.inc"
