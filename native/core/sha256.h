// SHA-256 (FIPS 180-4), with the CPU's instructions where it has some.
#ifndef EDGEKIT_CORE_SHA256_H_
#define EDGEKIT_CORE_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace edgekit {

class Sha256 {
 public:
  // portable: never use special instructions.
  explicit Sha256(bool portable = false) noexcept;

  void update(const void* data, size_t size_bytes) noexcept;

  // 64 lower-case hex digits of everything given so far; nothing may be added afterwards.
  std::string hex() noexcept;

 private:
  static constexpr size_t kBlockBytes = 64;

  std::array<uint32_t, 8> state_;
  std::array<unsigned char, kBlockBytes> pending_;
  size_t pending_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  bool hardware_;
};

}  // namespace edgekit

#endif  // EDGEKIT_CORE_SHA256_H_
