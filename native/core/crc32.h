// CRC-32 as zip and PNG use it (ISO 3309, polynomial 0xEDB88320 reflected).
#ifndef EDGEKIT_CORE_CRC32_H_
#define EDGEKIT_CORE_CRC32_H_

#include <cstddef>
#include <cstdint>

namespace edgekit {

// CRC of data; seed is the CRC of what came before it, 0 at the start. Uses the CPU's instructions where it has some.
uint32_t crc32(const void* data, size_t size_bytes, uint32_t seed = 0) noexcept;

// The same by table look-up on any CPU.
uint32_t crc32_portable(const void* data, size_t size_bytes, uint32_t seed = 0) noexcept;

}  // namespace edgekit

#endif  // EDGEKIT_CORE_CRC32_H_
