#include "engine/package_member.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "core/cpu_features.h"
#include "core/crc32.h"
#include "core/mapped_file.h"

namespace edgekit {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50, kEndSignature = 0x06054b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kMaxComment = 0xffff;
constexpr std::string_view kFolder = "variants/native-", kProgram = "/program.ekn";

struct Entry {
  uint32_t crc = 0;
  uint64_t size_bytes = 0;
  uint64_t local_offset = 0;
  bool plain = false;  // stored, not encrypted
};

// Reads little-endian numbers of a mapped package; every read is inside the file.
class Zip {
 public:
  explicit Zip(const MappedFile& file) : data_(file.data()), size_bytes_(file.size_bytes()) {}

  Status read_directory() {
    uint64_t end = 0;
    if (!find_end(&end)) return invalid("is not a package, or is truncated");
    const uint64_t count = u16(end + 10), directory_bytes = u32(end + 12);
    uint64_t at = u32(end + 16);
    if (at > end || directory_bytes > end - at) return invalid("directory is out of bounds");
    const uint64_t limit = at + directory_bytes;
    for (uint64_t i = 0; i < count; ++i) EK_RETURN_IF_ERROR(read_entry(&at, limit));
    return Status::ok();
  }

  // Where the bytes of a member lie, its CRC checked.
  Result<MemberRange> locate(const std::string& name) const {
    const Entry& entry = entries_.at(name);
    if (!entry.plain) return invalid(name + ": is compressed or encrypted");
    if (!inside(entry.local_offset, kLocalBytes) || u32(entry.local_offset) != kLocalSignature) {
      return invalid(name + ": header is out of bounds");
    }
    const uint64_t start =
        entry.local_offset + kLocalBytes + u16(entry.local_offset + 26) + u16(entry.local_offset + 28);
    if (!inside(start, entry.size_bytes)) return invalid(name + ": is out of bounds");
    if (crc32(data_ + start, entry.size_bytes) != entry.crc) return invalid(name + ": checksum differs");
    return MemberRange{name, start, entry.size_bytes};
  }

  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  static Status invalid(const std::string& message) { return {StatusCode::kInvalidProgram, message}; }

  bool inside(uint64_t offset, uint64_t bytes) const { return offset <= size_bytes_ && bytes <= size_bytes_ - offset; }

  uint32_t u16(uint64_t at) const {
    uint16_t value;
    std::memcpy(&value, data_ + at, sizeof(value));
    return value;
  }
  uint32_t u32(uint64_t at) const {
    uint32_t value;
    std::memcpy(&value, data_ + at, sizeof(value));
    return value;
  }

  // The end record is the last one whose comment reaches exactly to the end of the file.
  bool find_end(uint64_t* end) const {
    if (size_bytes_ < kEndBytes) return false;
    const uint64_t last = size_bytes_ - kEndBytes;
    const uint64_t first = last - std::min(last, kMaxComment);
    for (uint64_t at = last + 1; at-- > first;) {
      if (u32(at) == kEndSignature && at + kEndBytes + u16(at + 20) == size_bytes_) {
        *end = at;
        return true;
      }
    }
    return false;
  }

  Status read_entry(uint64_t* at, uint64_t limit) {
    if (limit - *at < kCentralBytes || u32(*at) != kCentralSignature) return invalid("directory is damaged");
    const uint64_t name_bytes = u16(*at + 28);
    const uint64_t entry_bytes = kCentralBytes + name_bytes + u16(*at + 30) + u16(*at + 32);
    if (limit - *at < entry_bytes) return invalid("directory is damaged");
    const std::string name(reinterpret_cast<const char*>(data_ + *at + kCentralBytes), name_bytes);
    Entry entry;
    entry.crc = u32(*at + 16);
    entry.size_bytes = u32(*at + 24);
    entry.local_offset = u32(*at + 42);
    const bool encrypted = u16(*at + 8) & 1, stored = u16(*at + 10) == 0 && u32(*at + 20) == entry.size_bytes;
    entry.plain = stored && !encrypted;
    if (!entries_.emplace(name, entry).second) return invalid("a member is there twice");
    *at += entry_bytes;
    return Status::ok();
  }

  const std::byte* data_;
  uint64_t size_bytes_;
  std::map<std::string, Entry> entries_;
};

// Whether the folder of a program holds other parts that only the Python engine chains.
bool has_other_parts(const Zip& zip, const std::string& program) {
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  return std::any_of(zip.entries().begin(), zip.entries().end(), [&](const auto& item) {
    return item.first != program && item.first.compare(0, folder.size(), folder) == 0;
  });
}

Result<MemberRange> choose(const Zip& zip, Isa active) {
  std::string found;
  Status problem;
  for (const Isa isa : isas_ascending()) {
    const std::string name = std::string(kFolder) + name_of(isa) + std::string(kProgram);
    if (zip.entries().count(name) == 0) continue;
    const Result<Isa> kernels = kernel_isa(isa, active);
    if (kernels.is_ok()) {
      found = name;  // a later one of the same architecture is preferred
    } else {
      problem = kernels.status();
    }
  }
  if (found.empty()) {
    if (!problem.is_ok()) return problem;
    return Status(StatusCode::kInvalidInput, "has no native variant; convert for a device with a native one");
  }
  if (has_other_parts(zip, found)) {
    return Status(StatusCode::kInvalidInput,
                  found + ": has parts for ONNX Runtime, which the C interface can't run; use Python");
  }
  return zip.locate(found);
}

}  // namespace

Result<bool> is_package(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.is_ok()) return file.status();
  uint32_t signature = 0;
  if (file.value().size_bytes() >= sizeof(signature)) {
    std::memcpy(&signature, file.value().data(), sizeof(signature));
  }
  return signature == kLocalSignature || signature == kEndSignature;
}

Result<MemberRange> find_native_program(const std::string& path, Isa active) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.is_ok()) return file.status();
  Zip zip(file.value());
  Status status = zip.read_directory();
  if (status.is_ok()) {
    Result<MemberRange> range = choose(zip, active);
    if (range.is_ok()) return range;
    status = range.status();
  }
  return Status(status.code(), path + ": " + status.message());
}

}  // namespace edgekit
