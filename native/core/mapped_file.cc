#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace edgekit {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(const std::string& path) : value_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~FileDescriptor() {
    if (value_ >= 0) close(value_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

Status io_error(const std::string& path, const std::string& what) {
  return {StatusCode::kIo, path + ": " + what + " (" + std::strerror(errno) + ")"};
}

}  // namespace

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

Result<MappedFile> MappedFile::open(const std::string& path, uint64_t offset_bytes, uint64_t size_bytes) {
  const FileDescriptor file(path);
  struct stat info = {};
  if (file.value() < 0 || fstat(file.value(), &info) != 0) return io_error(path, "can't be opened");
  if (!S_ISREG(info.st_mode)) return Status(StatusCode::kIo, path + ": is not a regular file");
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);
  if (offset_bytes > file_bytes) {
    return Status(StatusCode::kInvalidProgram, path + ": range starts at byte " + std::to_string(offset_bytes) +
                                                   ", beyond the file's " + std::to_string(file_bytes));
  }
  if (size_bytes == kToEnd) size_bytes = file_bytes - offset_bytes;
  if (size_bytes == 0 || size_bytes > file_bytes - offset_bytes) {
    return Status(StatusCode::kInvalidProgram, path + ": range of " + std::to_string(size_bytes) + " bytes at byte " +
                                                   std::to_string(offset_bytes) + " is not inside the file's " +
                                                   std::to_string(file_bytes));
  }
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t lead = offset_bytes % page;
  MappedFile mapped;
  // Populated: whoever opens a program reads all of it, to check its sum.
  void* mapping = mmap(nullptr, size_bytes + lead, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.value(),
                       static_cast<off_t>(offset_bytes - lead));
  if (mapping == MAP_FAILED) return io_error(path, "can't be mapped");
  mapped.mapping_ = mapping;
  mapped.mapping_bytes_ = size_bytes + lead;
  mapped.data_ = static_cast<const std::byte*>(mapping) + lead;
  mapped.size_bytes_ = size_bytes;
  return Result<MappedFile>(std::move(mapped));
}

}  // namespace edgekit
