#include "core/crc32.h"

#include <array>
#include <cstring>

#include "core/crc32_hardware.h"

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

// state: the inverted CRC.
uint32_t advance(const unsigned char* bytes, size_t size_bytes, uint32_t state) noexcept {
  for (; size_bytes >= kSlices; size_bytes -= kSlices, bytes += kSlices) {
    unsigned char block[kSlices];
    std::memcpy(block, bytes, kSlices);
    for (int i = 0; i < 4; ++i) block[i] ^= static_cast<unsigned char>(state >> (8 * i));
    state = 0;
    for (int i = 0; i < kSlices; ++i) state ^= kTables[kSlices - 1 - i][block[i]];
  }
  for (; size_bytes > 0; --size_bytes, ++bytes) state = (state >> 8) ^ kTables[0][(state ^ *bytes) & 0xff];
  return state;
}

}  // namespace

uint32_t crc32(const void* data, size_t size_bytes, uint32_t seed) noexcept {
  static const bool hardware = has_crc32_hardware();
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  uint32_t state = ~seed;
  const size_t taken = hardware ? crc32_hardware(bytes, size_bytes, &state) : 0;
  return ~advance(bytes + taken, size_bytes - taken, state);
}

uint32_t crc32_portable(const void* data, size_t size_bytes, uint32_t seed) noexcept {
  return ~advance(static_cast<const unsigned char*>(data), size_bytes, ~seed);
}

}  // namespace edgekit
