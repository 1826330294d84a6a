#include "tests/inverter_program.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/crc32.h"

namespace edgekit::test {
namespace {

constexpr float kScale = 0.0625f;
constexpr int kZeroPoint = 8;
constexpr uint64_t kTableBytes = 256;
// The strings section: names of x, q, table, y, each one character, and of both ops.
constexpr char kStrings[] = "xqty";

void align(std::string* out) { out->resize((out->size() + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes); }

// Appends a section on its alignment and returns its offset.
template <typename T>
uint64_t append(std::string* out, const std::vector<T>& records) {
  align(out);
  const uint64_t offset = out->size();
  out->append(reinterpret_cast<const char*>(records.data()), records.size() * sizeof(T));
  return offset;
}

TensorRecord tensor(uint32_t name, Dtype dtype, uint16_t buffer, int width) {
  TensorRecord record{};
  record.name_offset = name;
  record.name_bytes = 1;
  record.dtype = static_cast<uint8_t>(dtype);
  record.rank = 1;
  record.buffer = buffer;
  record.dims[0] = width;
  record.strides[0] = 1;
  return record;
}

OpRecord op(Opcode opcode, uint8_t inputs, uint32_t first_operand, uint32_t name) {
  OpRecord record{};
  record.opcode = static_cast<uint16_t>(opcode);
  record.input_count = inputs;
  record.output_count = 1;
  record.first_operand = first_operand;
  record.name_offset = name;
  record.name_bytes = 1;
  return record;
}

PlanRecord plan(uint64_t arena_bytes) {
  PlanRecord record{};
  record.buffer_count = record.tensor_count = 4;
  record.op_count = 2;
  record.first_input = 5;
  record.input_count = 1;
  record.first_output = 6;
  record.output_count = 1;
  record.arena_bytes = arena_bytes;
  return record;
}

std::vector<char> table() {
  std::vector<char> bytes(kTableBytes + kAlignmentBytes);
  for (size_t i = 0; i < kTableBytes; ++i) bytes[i] = static_cast<char>(255 - i);
  return bytes;
}

void put(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) *out += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
}

// The fields that a local header and a directory entry have in common: version to extra length.
void put_common(std::string* out, const std::string& name, const std::string& data) {
  put(out, 20, 2);
  put(out, 0, 2 + 2 + 4);  // flags, stored, time and date
  put(out, crc32(data.data(), data.size()), 4);
  put(out, data.size(), 4);
  put(out, data.size(), 4);
  put(out, name.size(), 2);
  put(out, 0, 2);
}

}  // namespace

std::string inverter_program(int width, Isa isa) {
  const uint64_t wide = static_cast<uint64_t>(width), arena_bytes = (wide + 63) / 64 * 64;
  std::vector<TensorRecord> tensors = {tensor(0, Dtype::kF32, 2, width), tensor(1, Dtype::kU8, 0, width),
                                       tensor(2, Dtype::kU8, 1, kTableBytes), tensor(3, Dtype::kU8, 3, width)};
  tensors[1].scale = kScale;
  tensors[1].zero_point = kZeroPoint;
  HeaderRecord header{};
  std::memcpy(header.magic, kMagic, sizeof(header.magic));
  header.major = kFormatMajor;
  header.isa = static_cast<uint32_t>(isa);
  header.plan_count = 1;
  header.buffer_count = header.tensor_count = 4;
  header.op_count = 2;
  header.operand_count = 7;
  header.strings_bytes = 4;
  header.constants_bytes = kTableBytes + kAlignmentBytes;
  std::string out(sizeof(header), '\0');
  header.plans_offset = append(&out, std::vector<PlanRecord>{plan(arena_bytes)});
  header.buffers_offset = append(
      &out,
      std::vector<BufferRecord>{{0, 0, arena_bytes}, {1, 0, header.constants_bytes}, {2, 0, wide * 4}, {3, 0, wide}});
  header.tensors_offset = append(&out, tensors);
  header.ops_offset = append(&out, std::vector<OpRecord>{op(Opcode::kConvert, 1, 0, 1), op(Opcode::kLutQ8, 2, 2, 3)});
  header.operands_offset = append(&out, std::vector<int32_t>{0, 1, 1, 2, 3, 0, 3});
  header.attributes_offset = append(&out, std::vector<uint32_t>{});
  header.strings_offset = append(&out, std::vector<char>(kStrings, kStrings + 4));
  header.constants_offset = append(&out, table());
  header.file_bytes = out.size();
  header.body_crc32 = crc32(out.data() + sizeof(header), out.size() - sizeof(header));
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

uint8_t inverted(float x) {
  const float quantized = std::nearbyint(x / kScale) + static_cast<float>(kZeroPoint);
  return static_cast<uint8_t>(255 - static_cast<int>(std::min(255.0f, std::max(0.0f, quantized))));
}

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out, directory;
  for (const auto& [name, data] : members) {
    const size_t offset = out.size();
    put(&out, 0x04034b50, 4);
    put_common(&out, name, data);
    out += name + data;
    put(&directory, 0x02014b50, 4);
    put(&directory, 20, 2);
    put_common(&directory, name, data);
    put(&directory, 0, 2 + 2 + 2 + 4);  // comment length, disk, attributes
    put(&directory, offset, 4);
    directory += name;
  }
  const size_t start = out.size();
  out += directory;
  put(&out, 0x06054b50, 4);
  put(&out, 0, 4);
  put(&out, members.size(), 2);
  put(&out, members.size(), 2);
  put(&out, directory.size(), 4);
  put(&out, start, 4);
  put(&out, 0, 2);
  return out;
}

TemporaryFile::TemporaryFile(const std::string& bytes) {
  std::string pattern = (std::filesystem::temp_directory_path() / "edgekit-test-XXXXXX").string();
  const int file = mkstemp(pattern.data());
  if (file < 0) std::abort();
  close(file);
  path_ = pattern;
  std::ofstream(path_, std::ios::binary) << bytes;
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

}  // namespace edgekit::test
