#include "core/aligned_buffer.h"

#include <sys/mman.h>

#include <string>
#include <utility>

namespace edgekit {

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

Result<AlignedBuffer> AlignedBuffer::allocate(size_t size_bytes, const char* what) {
  AlignedBuffer buffer;
  if (size_bytes == 0) return Result<AlignedBuffer>(std::move(buffer));
  void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Status(StatusCode::kOutOfMemory,
                  std::string(what) + ": no memory for " + std::to_string(size_bytes) + " bytes");
  }
  buffer.data_ = static_cast<std::byte*>(memory);
  buffer.size_bytes_ = size_bytes;
  return Result<AlignedBuffer>(std::move(buffer));
}

}  // namespace edgekit
