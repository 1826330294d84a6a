#include <cstdint>
#include <string>
#include <vector>

#include "core/crc32.h"
#include "core/sha256.h"
#include "tests/check.h"

namespace edgekit {
namespace {

// The definition, bit by bit.
uint32_t plain_crc32(const unsigned char* data, size_t size_bytes, uint32_t seed) {
  uint32_t crc = ~seed;
  for (size_t i = 0; i < size_bytes; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

std::vector<unsigned char> noise(size_t size_bytes) {
  std::vector<unsigned char> data(size_bytes);
  uint32_t state = 12345;
  for (unsigned char& byte : data) byte = static_cast<unsigned char>((state = state * 1664525u + 1013904223u) >> 24);
  return data;
}

std::string sha256(const std::string& text, bool portable) {
  Sha256 hash(portable);
  hash.update(text.data(), text.size());
  return hash.hex();
}

EK_TEST(crc32_is_that_of_the_definition_for_every_length_and_alignment) {
  const std::vector<unsigned char> data = noise(700);
  for (size_t start = 0; start < 17; ++start) {
    for (size_t size = 0; start + size <= data.size(); size += size < 300 ? 1 : 37) {
      const uint32_t seed = size % 3 == 0 ? 0 : 0x9e3779b9u;
      const uint32_t expected = plain_crc32(data.data() + start, size, seed);
      EK_CHECK(crc32(data.data() + start, size, seed) == expected);
      EK_CHECK(crc32_portable(data.data() + start, size, seed) == expected);
    }
  }
}

EK_TEST(crc32_check_value) {  // of the catalogue of parametrised CRC algorithms: CRC-32/ISO-HDLC
  EK_CHECK(crc32("123456789", 9) == 0xcbf43926u);
}

EK_TEST(sha256_examples_of_the_standard) {  // FIPS 180-4's example messages, published by NIST
  for (const bool portable : {false, true}) {
    EK_CHECK(sha256("", portable) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EK_CHECK(sha256("abc", portable) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EK_CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", portable) ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EK_CHECK(sha256(std::string(1000000, 'a'), portable) ==
             "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

EK_TEST(sha256_does_not_depend_on_how_the_bytes_are_given) {
  const std::vector<unsigned char> data = noise(1000);
  for (size_t size = 0; size < 200; ++size) {
    Sha256 portable(true), whole, pieces;
    portable.update(data.data(), size);
    whole.update(data.data(), size);
    for (size_t at = 0, step = 1; at < size; at += step, step = step % 70 + 7) {
      pieces.update(data.data() + at, step < size - at ? step : size - at);
    }
    const std::string expected = portable.hex();
    EK_CHECK(whole.hex() == expected);
    EK_CHECK(pieces.hex() == expected);
  }
}

}  // namespace
}  // namespace edgekit
