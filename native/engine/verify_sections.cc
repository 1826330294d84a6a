#include "engine/verify_sections.h"

#include <cstring>
#include <string>

#include "core/crc32.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "program.ekn is little-endian and read in place");

namespace edgekit {
namespace {

Status invalid(const std::string& message) { return {StatusCode::kInvalidProgram, "program: " + message}; }

struct Section {
  const char* name;
  uint64_t offset_bytes;
  uint64_t count;
  uint64_t record_bytes;
  uint64_t limit;  // of count
};

Status check_header(const HeaderRecord& header, uint64_t size_bytes) {
  if (std::memcmp(header.magic, kMagic, sizeof(header.magic)) != 0) return invalid("is not an edgekit program");
  if (header.major != kFormatMajor) {
    return invalid("format " + std::to_string(header.major) + "." + std::to_string(header.minor) +
                   " is not supported (expected " + std::to_string(kFormatMajor) + ".x); " +
                   (header.major > kFormatMajor ? "update edgekit" : "convert the model anew"));
  }
  if (header.file_bytes != size_bytes) {
    return invalid("is truncated or extended (got " + std::to_string(size_bytes) + " bytes, expected " +
                   std::to_string(header.file_bytes) + ")");
  }
  const uint32_t crc = crc32(reinterpret_cast<const std::byte*>(&header) + sizeof(header), size_bytes - sizeof(header));
  if (crc != header.body_crc32) return invalid("checksum differs, the file is damaged");
  if (header.isa >= static_cast<uint32_t>(kIsaCount))
    return invalid("unknown instruction set " + std::to_string(header.isa));
  for (uint32_t word : header.reserved) {
    if (word != 0 && header.minor <= kFormatMinor) return invalid("header: reserved field is not 0");
  }
  return Status::ok();
}

// Sections come in the documented order, aligned, without overlap, inside the file.
Status check_bounds(const Section* sections, size_t section_count, uint64_t size_bytes) {
  uint64_t end = sizeof(HeaderRecord);
  for (size_t i = 0; i < section_count; ++i) {
    const Section& section = sections[i];
    if (section.count > section.limit) {
      return invalid(std::string(section.name) + ": too many (got " + std::to_string(section.count) + ", limit " +
                     std::to_string(section.limit) + ")");
    }
    if (section.offset_bytes % kAlignmentBytes != 0)
      return invalid(std::string(section.name) + ": section is misaligned");
    if (section.offset_bytes < end || section.offset_bytes > size_bytes ||
        section.count > (size_bytes - section.offset_bytes) / section.record_bytes) {
      return invalid(std::string(section.name) + ": section is out of bounds");
    }
    end = section.offset_bytes + section.count * section.record_bytes;
  }
  return Status::ok();
}

// Length of the well-formed UTF-8 sequence at text (RFC 3629), 0 when there is none. NUL is refused: names go to C.
size_t utf8_sequence(const unsigned char* text, size_t left) {
  const unsigned char lead = text[0];
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length > left) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = text[1];
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second > 0x9f;
  const bool beyond = lead == 0xf4 && second > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

Status check_strings(const char* strings, uint64_t size_bytes) {
  const unsigned char* text = reinterpret_cast<const unsigned char*>(strings);
  for (uint64_t i = 0; i < size_bytes;) {
    const size_t length = utf8_sequence(text + i, size_bytes - i);
    if (length == 0) return invalid("strings: not UTF-8 at byte " + std::to_string(i));
    i += length;
  }
  return Status::ok();
}

}  // namespace

Result<ProgramView> verify_sections(const std::byte* data, uint64_t size_bytes) {
  if (size_bytes < sizeof(HeaderRecord)) {
    return invalid("is truncated (got " + std::to_string(size_bytes) + " bytes, expected at least " +
                   std::to_string(sizeof(HeaderRecord)) + ")");
  }
  const HeaderRecord& header = *reinterpret_cast<const HeaderRecord*>(data);
  EK_RETURN_IF_ERROR(check_header(header, size_bytes));
  const Section sections[] = {
      {"plans", header.plans_offset, header.plan_count, sizeof(PlanRecord), kLimitPlans},
      {"buffers", header.buffers_offset, header.buffer_count, sizeof(BufferRecord), kLimitTensors},
      {"tensors", header.tensors_offset, header.tensor_count, sizeof(TensorRecord), kLimitTensors},
      {"ops", header.ops_offset, header.op_count, sizeof(OpRecord), kLimitOps},
      {"operands", header.operands_offset, header.operand_count, sizeof(int32_t), kLimitOperands},
      {"attributes", header.attributes_offset, header.attribute_word_count, sizeof(uint32_t), kLimitAttributeWords},
      {"strings", header.strings_offset, header.strings_bytes, 1, kLimitStringBytes},
      {"constants", header.constants_offset, header.constants_bytes, 1, UINT64_MAX},
  };
  EK_RETURN_IF_ERROR(check_bounds(sections, sizeof(sections) / sizeof(sections[0]), size_bytes));
  ProgramView view;
  view.data = data;
  view.size_bytes = size_bytes;
  view.header = &header;
  view.plans = reinterpret_cast<const PlanRecord*>(data + header.plans_offset);
  view.buffers = reinterpret_cast<const BufferRecord*>(data + header.buffers_offset);
  view.tensors = reinterpret_cast<const TensorRecord*>(data + header.tensors_offset);
  view.ops = reinterpret_cast<const OpRecord*>(data + header.ops_offset);
  view.operands = reinterpret_cast<const int32_t*>(data + header.operands_offset);
  view.attributes = reinterpret_cast<const uint32_t*>(data + header.attributes_offset);
  view.strings = reinterpret_cast<const char*>(data + header.strings_offset);
  view.constants = data + header.constants_offset;
  EK_RETURN_IF_ERROR(check_strings(view.strings, header.strings_bytes));
  return view;
}

}  // namespace edgekit
