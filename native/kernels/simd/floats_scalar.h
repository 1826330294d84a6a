// Floats, Ints, Mask and Bytes for the scalar tables: one lane. The four floats_<isa>.h define the same names with the
// same results bit for bit; a kernel written on them once (an .inc) is compiled for every instruction set. EK_SIMD is
// the namespace that such a kernel goes into.
#ifndef EDGEKIT_KERNELS_SIMD_FLOATS_SCALAR_H_
#define EDGEKIT_KERNELS_SIMD_FLOATS_SCALAR_H_

#include <cstdint>
#include <cstring>

#define EK_SIMD scalar

namespace edgekit {
namespace scalar {

using Floats = float;
using Ints = int32_t;
using Mask = bool;
inline constexpr int kLanes = 1;

inline Floats load(const float* p) { return *p; }
inline void store(float* p, Floats a) { *p = a; }
inline Floats splat(float a) { return a; }
inline Floats fma(Floats a, Floats b, Floats c) { return __builtin_fmaf(a, b, c); }  // a * b + c, rounded once
inline Mask less(Floats a, Floats b) { return a < b; }
inline Mask equal(Floats a, Floats b) { return a == b; }
inline Floats select(Mask m, Floats a, Floats b) { return m ? a : b; }
inline Floats max_of(Floats a, Floats b) { return a > b ? a : b; }  // b when either is NaN, and of +0 and -0
inline Floats min_of(Floats a, Floats b) { return a < b ? a : b; }  // likewise
inline Floats sqrt(Floats a) { return __builtin_sqrtf(a); }
inline Floats round_even(Floats a) { return __builtin_rintf(a); }
inline Floats floor(Floats a) { return __builtin_floorf(a); }
inline Floats ceil(Floats a) { return __builtin_ceilf(a); }

inline Ints int_splat(int32_t a) { return a; }
// Half to even. Any integer, but no trap, for NaN and what is out of range.
inline Ints to_int(Floats a) { return static_cast<int32_t>(__builtin_lrintf(a)); }
inline Floats to_float(Ints a) { return static_cast<float>(a); }
inline Ints bits_of(Floats a) {
  int32_t bits;
  std::memcpy(&bits, &a, sizeof(bits));
  return bits;
}
inline Floats of_bits(Ints bits) {
  float a;
  std::memcpy(&a, &bits, sizeof(a));
  return a;
}
inline Ints int_add(Ints a, Ints b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
inline Ints int_sub(Ints a, Ints b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}
inline Ints int_and(Ints a, Ints b) { return a & b; }
inline Ints int_or(Ints a, Ints b) { return a | b; }
template <int count>
inline Ints shift_left(Ints a) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) << count);
}
template <int count>
inline Ints shift_right(Ints a) {  // keeps the sign
  return a >> count;
}

using Bytes = uint8_t;
inline constexpr int kByteLanes = 1;
inline Bytes load_bytes(const uint8_t* p) { return *p; }
inline void store_bytes(uint8_t* p, Bytes a) { *p = a; }
inline Bytes max_u8(Bytes a, Bytes b) { return a > b ? a : b; }
inline Bytes max_s8(Bytes a, Bytes b) { return static_cast<int8_t>(a) > static_cast<int8_t>(b) ? a : b; }

}  // namespace scalar
}  // namespace edgekit

#include "kernels/simd/float_math.inc"

#endif  // EDGEKIT_KERNELS_SIMD_FLOATS_SCALAR_H_
