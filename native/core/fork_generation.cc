#include "core/fork_generation.h"

#include <pthread.h>

#include <atomic>

namespace edgekit {
namespace {

std::atomic<int> generation{0};

void count_fork() { generation.fetch_add(1, std::memory_order_relaxed); }

// Registered when the library is loaded: a fork can come before the first call.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, count_fork);

}  // namespace

int fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

bool lost_in_fork(int generation_of_start, std::thread* thread) {
  if (generation_of_start == fork_generation()) return false;
  if (thread->joinable()) thread->detach();
  return true;
}

}  // namespace edgekit
