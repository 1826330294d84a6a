// MappedFile: a byte range of a file, mapped read-only. Pages are shared with every other process that maps it.
#ifndef EDGEKIT_CORE_MAPPED_FILE_H_
#define EDGEKIT_CORE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/status.h"

namespace edgekit {

class MappedFile {
 public:
  // Stands for "to the end of the file".
  static constexpr uint64_t kToEnd = UINT64_MAX;

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Maps size_bytes bytes from offset_bytes of a regular file. kIo when it can't be read, kInvalidProgram when the
  // range is not inside the file or is empty.
  static Result<MappedFile> open(const std::string& path, uint64_t offset_bytes = 0, uint64_t size_bytes = kToEnd);

  const std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  void* mapping_ = nullptr;  // page-aligned; data_ lies inside
  size_t mapping_bytes_ = 0;
  const std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace edgekit

#endif  // EDGEKIT_CORE_MAPPED_FILE_H_
