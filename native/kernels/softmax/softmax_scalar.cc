#include "kernels/simd/floats_scalar.h"
// The kernels, on those vectors:
#include "kernels/softmax/softmax_kernels.inc"
