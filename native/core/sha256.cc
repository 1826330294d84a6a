#include "core/sha256.h"

#include <algorithm>
#include <cstring>

#include "core/sha256_blocks.h"

namespace edgekit {
namespace {

uint32_t big_endian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

void compress(const uint32_t* state, const unsigned char* block, uint32_t (&next)[8]) {
  uint32_t schedule[64];
  for (int i = 0; i < 16; ++i) schedule[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t w15 = schedule[i - 15], w2 = schedule[i - 2];
    const uint32_t s0 = rotate(w15, 7) ^ rotate(w15, 18) ^ w15 >> 3, s1 = rotate(w2, 17) ^ rotate(w2, 19) ^ w2 >> 10;
    schedule[i] = schedule[i - 16] + s0 + schedule[i - 7] + s1;
  }
  std::copy(state, state + 8, next);
  auto& [a, b, c, d, e, f, g, h] = next;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256Rounds[i] + schedule[i];
    const uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
}

}  // namespace

const uint32_t kSha256Rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

void sha256_blocks_portable(uint32_t* state, const unsigned char* data, size_t blocks) noexcept {
  uint32_t next[8];
  for (; blocks > 0; --blocks, data += 64) {
    compress(state, data, next);
    for (int i = 0; i < 8; ++i) state[i] += next[i];
  }
}

Sha256::Sha256(bool portable) noexcept
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      pending_{},
      hardware_(!portable && has_sha256_hardware()) {}

void Sha256::update(const void* data, size_t size_bytes) noexcept {
  const auto blocks = hardware_ ? sha256_blocks_hardware : sha256_blocks_portable;
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  total_bytes_ += size_bytes;
  if (pending_bytes_ > 0) {
    const size_t taken = std::min(size_bytes, kBlockBytes - pending_bytes_);
    std::memcpy(pending_.data() + pending_bytes_, bytes, taken);
    pending_bytes_ += taken;
    bytes += taken;
    size_bytes -= taken;
    if (pending_bytes_ < kBlockBytes) return;
    blocks(state_.data(), pending_.data(), 1);
  }
  blocks(state_.data(), bytes, size_bytes / kBlockBytes);
  pending_bytes_ = size_bytes % kBlockBytes;
  if (pending_bytes_ > 0) std::memcpy(pending_.data(), bytes + size_bytes - pending_bytes_, pending_bytes_);
}

std::string Sha256::hex() noexcept {
  const uint64_t bits = total_bytes_ * 8;
  unsigned char padding[kBlockBytes + 8] = {0x80};
  const size_t zeros_end = (pending_bytes_ < 56 ? 56 : 120) - pending_bytes_;
  for (int i = 0; i < 8; ++i)
    padding[zeros_end + static_cast<size_t>(i)] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(padding, zeros_end + 8);
  std::string text;
  for (uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  }
  return text;
}

}  // namespace edgekit
