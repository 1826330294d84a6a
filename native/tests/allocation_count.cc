#include "tests/allocation_count.h"

#include <atomic>
#include <cstddef>

// glibc's own names for what is replaced here. Sanitizers and static libraries bring a malloc of their own: builds with
// them leave out what uses this file (CMakeLists.txt).
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

std::atomic<long> allocations{0};

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = aligned_alloc(alignment, bytes);
  return *memory == nullptr ? 12 : 0;  // ENOMEM
}

}  // extern "C"

namespace edgekit::test {

AllocationCount::AllocationCount() : before_(allocations.load()) {}

long AllocationCount::now() const { return allocations.load() - before_; }

}  // namespace edgekit::test
