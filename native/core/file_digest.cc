#include "core/file_digest.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/crc32.h"
#include "core/sha256.h"

namespace edgekit {
namespace {

constexpr uint64_t kBlockBytes = 128 << 10;  // stays in the second-level cache between the read and the checksums

}  // namespace

FileDigest digest_file(int descriptor, uint64_t offset_bytes, uint64_t size_bytes) {
  FileDigest digest;
  Sha256 sha256;
  std::vector<unsigned char> block(static_cast<size_t>(std::min(size_bytes, kBlockBytes)));
  while (size_bytes > 0) {
    const size_t wanted = static_cast<size_t>(std::min(size_bytes, kBlockBytes));
    const ssize_t got = pread(descriptor, block.data(), wanted, static_cast<off_t>(offset_bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) digest.error = errno;
    if (got <= 0) break;
    sha256.update(block.data(), static_cast<size_t>(got));
    digest.crc32 = crc32(block.data(), static_cast<size_t>(got), digest.crc32);
    offset_bytes += static_cast<uint64_t>(got);
    size_bytes -= static_cast<uint64_t>(got);
  }
  digest.sha256 = sha256.hex();
  return digest;
}

}  // namespace edgekit
