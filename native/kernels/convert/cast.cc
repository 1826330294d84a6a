#include "kernels/convert/cast.h"

#include <limits>
#include <type_traits>

namespace edgekit {
namespace {

struct Bool {
  uint8_t byte;
};

template <typename To, typename From>
To cast_value(From x) {
  if constexpr (std::is_same_v<From, Bool>) {
    return cast_value<To>(static_cast<uint8_t>(x.byte != 0));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool{static_cast<uint8_t>(x != 0)};
  } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
    // The bounds as floats: the lower is exact, the upper may round up to 2^31 or 2^63, which saturates too.
    constexpr float kLow = static_cast<float>(std::numeric_limits<To>::min());
    constexpr float kHigh = static_cast<float>(std::numeric_limits<To>::max());
    if (x != x) return 0;
    if (x <= kLow) return std::numeric_limits<To>::min();
    if (x >= kHigh) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void cast_row(const CastRow& r) {
  const auto* x = reinterpret_cast<const From*>(r.x);
  auto* y = reinterpret_cast<To*>(r.y);
  for (int64_t i = 0; i < r.n; ++i) y[i * r.y_stride] = cast_value<To>(x[i * r.x_stride]);
}

template <typename From>
CastRowFn select_target(Dtype to) {
  switch (to) {
    case Dtype::kF32:
      return cast_row<From, float>;
    case Dtype::kS8:
      return cast_row<From, int8_t>;
    case Dtype::kU8:
      return cast_row<From, uint8_t>;
    case Dtype::kI32:
      return cast_row<From, int32_t>;
    case Dtype::kI64:
      return cast_row<From, int64_t>;
    case Dtype::kBool:
      return cast_row<From, Bool>;
  }
  return nullptr;
}

}  // namespace

CastRowFn select_cast(Dtype from, Dtype to) {
  switch (from) {
    case Dtype::kF32:
      return select_target<float>(to);
    case Dtype::kS8:
      return select_target<int8_t>(to);
    case Dtype::kU8:
      return select_target<uint8_t>(to);
    case Dtype::kI32:
      return select_target<int32_t>(to);
    case Dtype::kI64:
      return select_target<int64_t>(to);
    case Dtype::kBool:
      return select_target<Bool>(to);
  }
  return nullptr;
}

}  // namespace edgekit
