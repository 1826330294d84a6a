#include "kernels/simd/floats_neon.h"
// The kernels, on those vectors:
#include "kernels/pool/pool_kernels.inc"
