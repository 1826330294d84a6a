// FlushDenormals: sets flush-to-zero (and denormals-are-zero) on the calling thread for as long as it lives.
// Denormal operands cost some cores 100 cycles an operation; weights around 1e-39 would make a model 30 times slower.
#ifndef EDGEKIT_CORE_FLOAT_MODE_H_
#define EDGEKIT_CORE_FLOAT_MODE_H_

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace edgekit {

// The whole floating-point control word of the calling thread.
inline uint64_t float_mode() noexcept {
#if defined(__SSE2__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

inline void set_float_mode(uint64_t mode) noexcept {
#if defined(__SSE2__)
  _mm_setcsr(static_cast<unsigned>(mode));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" ::"r"(mode));
#else
  (void)mode;
#endif
}

// mode with denormals flushed on input and output, rounding to nearest even and all traps masked: what kernels expect.
inline uint64_t flushing_float_mode() noexcept {
#if defined(__SSE2__)
  return 0x1f80u | 0x8000u | 0x0040u;  // exceptions masked | flush to zero | denormals are zero
#elif defined(__aarch64__)
  return uint64_t{1} << 24;  // FZ
#else
  return 0;
#endif
}

class FlushDenormals {
 public:
  FlushDenormals() noexcept : saved_(float_mode()) { set_float_mode(flushing_float_mode()); }
  ~FlushDenormals() { set_float_mode(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace edgekit

#endif  // EDGEKIT_CORE_FLOAT_MODE_H_
