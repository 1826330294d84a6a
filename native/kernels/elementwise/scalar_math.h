// Arithmetic on single elements of any dtype, defined for every value: integers wrap, and division by zero gives 0.
#ifndef EDGEKIT_KERNELS_ELEMENTWISE_SCALAR_MATH_H_
#define EDGEKIT_KERNELS_ELEMENTWISE_SCALAR_MATH_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "program_schema.h"

namespace edgekit {

// The unsigned type in which T's arithmetic wraps without undefined behaviour (at least 32 bits, or promotion to int
// would overflow).
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T>
T wrap(Wrapping<T> value) {
  return static_cast<T>(value);
}

template <typename T>
T wrapping_neg(T a) {
  return wrap<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
}

// a / b towards zero as ONNX has it; 0 for b = 0; the least value over -1 wraps to itself.
template <typename T>
T divide(T a, T b) {
  if (b == 0) return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrapping_neg(a);
  return static_cast<T>(a / b);
}

// Remainder with the sign of a; 0 for b = 0.
template <typename T>
T remainder(T a, T b) {
  if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
  return static_cast<T>(a % b);
}

inline float remainder(float a, float b) { return std::fmod(a, b); }

// Remainder with the sign of b, as Python has it.
template <typename T>
T modulo(T a, T b) {
  const T r = remainder(a, b);
  return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}

// base^exponent, wrapping; a negative exponent gives the truncated quotient 1 / base^-exponent.
template <typename T>
T power(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == static_cast<T>(-1)) return exponent % 2 == 0 ? static_cast<T>(1) : base;
    return 0;
  }
  Wrapping<T> result = 1, factor = static_cast<Wrapping<T>>(base);
  for (Wrapping<T> rest = static_cast<Wrapping<T>>(exponent); rest != 0; rest >>= 1) {
    if (rest & 1) result *= factor;
    factor *= factor;
  }
  return wrap<T>(result);
}

// Through double precision, so that the result is the float nearest to the true power in all but rare cases. A square
// is exact in double, and is worth a case of its own.
inline float power(float base, float exponent) {
  if (exponent == 2.0f) return base * base;
  return static_cast<float>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
}

// The kinds that give a value of the operands' dtype. Floats come here for pow, mod and fmod only.
template <BinaryKind kind, typename T>
T arithmetic(T a, T b) {
  if constexpr (kind == BinaryKind::kPow) return power(a, b);
  if constexpr (kind == BinaryKind::kMod) return modulo(a, b);
  if constexpr (kind == BinaryKind::kFmod) return remainder(a, b);
  if constexpr (std::is_integral_v<T>) {
    using W = Wrapping<T>;
    if constexpr (kind == BinaryKind::kAdd) return wrap<T>(static_cast<W>(a) + static_cast<W>(b));
    if constexpr (kind == BinaryKind::kSub) return wrap<T>(static_cast<W>(a) - static_cast<W>(b));
    if constexpr (kind == BinaryKind::kMul) return wrap<T>(static_cast<W>(a) * static_cast<W>(b));
    if constexpr (kind == BinaryKind::kDiv) return divide(a, b);
    if constexpr (kind == BinaryKind::kMin) return a < b ? a : b;
    if constexpr (kind == BinaryKind::kMax) return a > b ? a : b;
    if constexpr (kind == BinaryKind::kPrelu) return a < 0 ? wrap<T>(static_cast<W>(a) * static_cast<W>(b)) : a;
  }
  return a;
}

// The comparisons.
template <BinaryKind kind, typename T>
bool compare(T a, T b) {
  switch (kind) {
    case BinaryKind::kEqual:
      return a == b;
    case BinaryKind::kLess:
      return a < b;
    case BinaryKind::kGreater:
      return a > b;
    case BinaryKind::kLessEqual:
      return a <= b;
    default:
      return a >= b;
  }
}

// float to integer: truncates and saturates, NaN gives 0.
template <typename T>
T saturate_to(float value) {
  if (value != value) return 0;
  constexpr float kLow = static_cast<float>(std::numeric_limits<T>::min());
  constexpr float kHigh = static_cast<float>(std::numeric_limits<T>::max());  // may round up, hence >= below
  if (value <= kLow) return std::numeric_limits<T>::min();
  if (value >= kHigh) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_ELEMENTWISE_SCALAR_MATH_H_
