#include "core/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace edgekit {
namespace {

#if defined(__SANITIZE_ADDRESS__)
// From the heap, so that AddressSanitizer sees every access beyond the end.
constexpr std::align_val_t kAlignment{4096};

void* acquire(size_t size_bytes) {
  void* memory = ::operator new(size_bytes, kAlignment, std::nothrow);
  if (memory != nullptr) std::memset(memory, 0, size_bytes);
  return memory;
}

void give_back(void* memory, size_t) { ::operator delete(memory, kAlignment); }
#else
void* acquire(size_t size_bytes) {
  void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void give_back(void* memory, size_t size_bytes) { munmap(memory, size_bytes); }
#endif

}  // namespace

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) give_back(data_, size_bytes_);
}

void AlignedBuffer::populate(size_t size_bytes) const {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14; older kernels refuse it and nothing is lost
  if (data_ != nullptr) madvise(data_, std::min(size_bytes, size_bytes_), kPopulateWrite);
}

Result<AlignedBuffer> AlignedBuffer::allocate(size_t size_bytes, const char* what) {
  AlignedBuffer buffer;
  if (size_bytes == 0) return Result<AlignedBuffer>(std::move(buffer));
  void* memory = acquire(size_bytes);
  if (memory == nullptr) {
    return Status(StatusCode::kOutOfMemory,
                  std::string(what) + ": no memory for " + std::to_string(size_bytes) + " bytes");
  }
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_bytes_ = size_bytes;
  return Result<AlignedBuffer>(std::move(buffer));
}

}  // namespace edgekit
