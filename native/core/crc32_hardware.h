// CRC-32 with the instructions of one architecture; crc32.cc chooses.
#ifndef EDGEKIT_CORE_CRC32_HARDWARE_H_
#define EDGEKIT_CORE_CRC32_HARDWARE_H_

#include <cstddef>
#include <cstdint>

namespace edgekit {

// Whether this CPU has them.
bool has_crc32_hardware() noexcept;

// Takes as many bytes of data as it can, a multiple of 16, and returns how many; *state is the inverted CRC before and
// after. Only where has_crc32_hardware().
size_t crc32_hardware(const unsigned char* data, size_t size_bytes, uint32_t* state) noexcept;

}  // namespace edgekit

#endif  // EDGEKIT_CORE_CRC32_HARDWARE_H_
