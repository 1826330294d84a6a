// The monotonic clock, as Python's time.monotonic_ns() reads it.
#ifndef EDGEKIT_CORE_CLOCK_H_
#define EDGEKIT_CORE_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace edgekit {

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace edgekit

#endif  // EDGEKIT_CORE_CLOCK_H_
