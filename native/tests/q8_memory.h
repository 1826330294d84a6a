// Memory for kernel tests: buffers flush against unreadable pages on both ends, and a repeatable source of numbers.
#ifndef EDGEKIT_TESTS_Q8_MEMORY_H_
#define EDGEKIT_TESTS_Q8_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace edgekit::test {

// `bytes` of memory that end at an unreadable page (or begin behind one): a read or write past that end is a SIGSEGV.
class GuardedBuffer {
 public:
  enum class Flush { kEnd, kBegin };

  explicit GuardedBuffer(size_t bytes, Flush flush = Flush::kEnd) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inner = (bytes + page - 1) / page * page + (bytes == 0 ? page : 0);
    mapped_bytes_ = inner + 2 * page;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) std::abort();
    auto* first = static_cast<uint8_t*>(mapped_) + page;
    if (mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = flush == Flush::kEnd ? first + inner - bytes : first;
  }
  ~GuardedBuffer() { munmap(mapped_, mapped_bytes_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  uint8_t* data_ = nullptr;
};

// xorshift64*: the same numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>((state_ * 0x2545F4914F6CDD1Du) >> 32);
  }
  int range(int least, int most) { return least + static_cast<int>(next() % static_cast<uint32_t>(most - least + 1)); }
  float unit() { return static_cast<float>(next() >> 8) * 0x1p-24f; }

 private:
  uint64_t state_;
};

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_Q8_MEMORY_H_
