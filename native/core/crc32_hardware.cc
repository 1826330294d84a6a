#include "core/crc32_hardware.h"

#include "core/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>

#include <cstring>
#endif

namespace edgekit {

#if defined(__x86_64__)
namespace {

#define EK_PCLMUL __attribute__((target("pclmul,sse4.1")))

// Moves a remainder forward over `data` bytes: the halves of x times the constants' powers of the variable, added.
EK_PCLMUL inline __m128i fold(__m128i x, __m128i constants, __m128i data) {
  const __m128i low = _mm_clmulepi64_si128(x, constants, 0x00), high = _mm_clmulepi64_si128(x, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), data);
}

EK_PCLMUL inline __m128i load(const unsigned char* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

// From 128 bits of remainder to 32, by Barrett reduction.
EK_PCLMUL uint32_t reduce(__m128i x) {
  const __m128i k3k4 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0), k5 = _mm_set_epi64x(0, 0x163cd6124);
  const __m128i polynomial = _mm_set_epi64x(0x1f7011641, 0x1db710641), low32 = _mm_setr_epi32(-1, 0, -1, 0);
  x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, k3k4, 0x10));
  x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, low32), k5, 0x00));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(x, low32), polynomial, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), polynomial, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(x, quotient), 1));
}

}  // namespace

bool has_crc32_hardware() noexcept { return cpu_has("pclmulqdq") && cpu_has("sse4_1"); }

// Folding by carry-less products: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel 2009; the constants are its table for this polynomial, bit-reflected.
EK_PCLMUL size_t crc32_hardware(const unsigned char* data, size_t size_bytes, uint32_t* state) noexcept {
  if (size_bytes < 64) return 0;
  const size_t taken = size_bytes / 16 * 16;
  const unsigned char* const end = data + taken;
  const __m128i k1k2 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), k3k4 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i lanes[4];
  for (int i = 0; i < 4; ++i) lanes[i] = load(data + 16 * i);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(*state)));
  for (data += 64; end - data >= 64; data += 64) {
    for (int i = 0; i < 4; ++i) lanes[i] = fold(lanes[i], k1k2, load(data + 16 * i));
  }
  __m128i one = lanes[0];
  for (int i = 1; i < 4; ++i) one = fold(one, k3k4, lanes[i]);
  for (; data < end; data += 16) one = fold(one, k3k4, load(data));
  *state = reduce(one);
  return taken;
}
#elif defined(__aarch64__)
bool has_crc32_hardware() noexcept { return cpu_has("crc32"); }

__attribute__((target("+crc"))) size_t crc32_hardware(const unsigned char* data, size_t size_bytes,
                                                      uint32_t* state) noexcept {
  const size_t taken = size_bytes / 16 * 16;
  uint32_t crc = *state;
  for (size_t i = 0; i < taken; i += 8) {
    uint64_t word;
    std::memcpy(&word, data + i, sizeof(word));
    crc = __crc32d(crc, word);
  }
  *state = crc;
  return taken;
}
#else
bool has_crc32_hardware() noexcept { return false; }
size_t crc32_hardware(const unsigned char*, size_t, uint32_t*) noexcept { return 0; }
#endif

}  // namespace edgekit
