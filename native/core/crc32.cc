#include "core/crc32.h"

#include <array>
#include <cstring>

namespace edgekit {
namespace {

constexpr int kSlices = 16;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// Table s advances the CRC of one byte over s further zero bytes, so that 16 bytes take 16 independent look-ups
// ("slicing", M. Kounavis and F. Berry, 2005).
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0u);
    tables[0][byte] = crc;
  }
  for (int slice = 1; slice < kSlices; ++slice) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t previous = tables[slice - 1][byte];
      tables[slice][byte] = (previous >> 8) ^ tables[0][previous & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32(const void* data, size_t size_bytes, uint32_t seed) noexcept {
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  uint32_t crc = ~seed;
  for (; size_bytes >= kSlices; size_bytes -= kSlices, bytes += kSlices) {
    unsigned char block[kSlices];
    std::memcpy(block, bytes, kSlices);
    for (int i = 0; i < 4; ++i) block[i] ^= static_cast<unsigned char>(crc >> (8 * i));
    crc = 0;
    for (int i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][block[i]];
  }
  for (; size_bytes > 0; --size_bytes, ++bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xff];
  return ~crc;
}

}  // namespace edgekit
