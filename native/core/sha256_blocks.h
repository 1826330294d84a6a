// The compression function of SHA-256 over whole blocks of 64 bytes: portable, and with special instructions.
#ifndef EDGEKIT_CORE_SHA256_BLOCKS_H_
#define EDGEKIT_CORE_SHA256_BLOCKS_H_

#include <cstddef>
#include <cstdint>

namespace edgekit {

extern const uint32_t kSha256Rounds[64];  // FIPS 180-4, 4.2.2

void sha256_blocks_portable(uint32_t* state, const unsigned char* data, size_t blocks) noexcept;

bool has_sha256_hardware() noexcept;
// Only where has_sha256_hardware().
void sha256_blocks_hardware(uint32_t* state, const unsigned char* data, size_t blocks) noexcept;

}  // namespace edgekit

#endif  // EDGEKIT_CORE_SHA256_BLOCKS_H_
