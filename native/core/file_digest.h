// The checksums of a range of a file, each byte read once.
#ifndef EDGEKIT_CORE_FILE_DIGEST_H_
#define EDGEKIT_CORE_FILE_DIGEST_H_

#include <cstdint>
#include <string>

namespace edgekit {

struct FileDigest {
  std::string sha256;  // 64 lower-case hex digits
  uint32_t crc32 = 0;
  int error = 0;  // errno of the read that failed; otherwise 0
};

// Of the bytes that are there, should the file end early. The file is read, not mapped: one that another process cuts
// short meanwhile gives another digest, not a signal.
FileDigest digest_file(int descriptor, uint64_t offset_bytes, uint64_t size_bytes);

}  // namespace edgekit

#endif  // EDGEKIT_CORE_FILE_DIGEST_H_
