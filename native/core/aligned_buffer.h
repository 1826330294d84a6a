// AlignedBuffer: zeroed, page-aligned memory straight from the operating system. Pages are committed when first
// touched, and freeing gives them back at once, so that unloading a model returns what loading it took.
#ifndef EDGEKIT_CORE_ALIGNED_BUFFER_H_
#define EDGEKIT_CORE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "program_schema.h"  // generated: kAlignmentBytes

namespace edgekit {

// bytes, rounded up so that what follows is aligned too.
inline uint64_t aligned_bytes(uint64_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  // size_bytes of zeros; kOutOfMemory, with the number, when there is not that much. what is named in the message.
  static Result<AlignedBuffer> allocate(size_t size_bytes, const char* what);

  // Commits the first size_bytes at once, which is cheaper than a page fault for each page later.
  void populate(size_t size_bytes) const;

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace edgekit

#endif  // EDGEKIT_CORE_ALIGNED_BUFFER_H_
