#include "kernels/simd/floats_scalar.h"
// The kernels, on those vectors:
#include "kernels/pool/pool_kernels.inc"
