// Waiting on a 32-bit word, with the kernel's futex: sleeps while the word holds a value, until somebody wakes it.
#ifndef EDGEKIT_CORE_PARKING_H_
#define EDGEKIT_CORE_PARKING_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace edgekit {

static_assert(sizeof(std::atomic<uint32_t>) == 4, "a futex word is 32 bits");

// Returns when *word was woken or no longer holds expected; may return without reason.
inline void park(std::atomic<uint32_t>* word, uint32_t expected) noexcept {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

inline void unpark_all(std::atomic<uint32_t>* word) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Tells the core that this is a spin loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // yield is a no-op on most cores; isb stalls for about as long as pause does
#endif
}

}  // namespace edgekit

#endif  // EDGEKIT_CORE_PARKING_H_
