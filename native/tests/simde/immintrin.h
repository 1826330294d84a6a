// Stands in for <immintrin.h> where *_vnni.cc files are compiled for a test on a CPU without their instructions:
// SIMDe's portable code under the names of the intrinsics, and the few that SIMDe (0.7) lacks, written as plain loops.
#ifndef EDGEKIT_TESTS_SIMDE_IMMINTRIN_H_
#define EDGEKIT_TESTS_SIMDE_IMMINTRIN_H_

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#include <simde/x86/avx512.h>
#pragma GCC diagnostic pop

#include <cmath>
#include <cstdint>
#include <cstring>

namespace edgekit::simde_gaps {

// Applies body(i) to each of n elements of a vector of To made from a vector of From.
template <typename To, typename From, typename Out, typename In, int n, typename Body>
inline Out map(In in, Body&& body) {
  From from[n];
  To to[n];
  Out out;
  std::memcpy(from, &in, sizeof(from));
  for (int i = 0; i < n; ++i) to[i] = body(from[i]);
  std::memcpy(&out, to, sizeof(out));
  return out;
}

inline simde__m512 cvtepi32_ps(simde__m512i v) {
  return map<float, int32_t, simde__m512, simde__m512i, 16>(v, [](int32_t x) { return static_cast<float>(x); });
}

// Out of range, as the instruction: the least i32.
inline simde__m512i cvtps_epi32(simde__m512 v) {
  return map<int32_t, float, simde__m512i, simde__m512, 16>(v, [](float x) {
    const double rounded = std::nearbyint(static_cast<double>(x));
    return rounded >= -2147483648.0 && rounded <= 2147483647.0 ? static_cast<int32_t>(rounded) : INT32_MIN;
  });
}

inline simde__m512i cvtepu8_epi32(__m128i v) {
  return map<int32_t, uint8_t, simde__m512i, __m128i, 16>(v, [](uint8_t x) { return static_cast<int32_t>(x); });
}

inline simde__m512i cvtepu8_epi16(__m256i v) {
  return map<int16_t, uint8_t, simde__m512i, __m256i, 32>(v, [](uint8_t x) { return static_cast<int16_t>(x); });
}

inline __m128i cvtepi32_epi8(simde__m512i v) {
  return map<uint8_t, int32_t, __m128i, simde__m512i, 16>(v, [](int32_t x) { return static_cast<uint8_t>(x); });
}

inline simde__m512i srai_epi32(simde__m512i v, int count) {
  return map<int32_t, int32_t, simde__m512i, simde__m512i, 16>(v, [count](int32_t x) { return x >> count; });
}

inline simde__m512i maskz_loadu_epi8(uint64_t mask, const void* from) {
  uint8_t bytes[64] = {};
  for (int i = 0; i < 64; ++i) {
    if (mask >> i & 1) bytes[i] = static_cast<const uint8_t*>(from)[i];
  }
  simde__m512i out;
  std::memcpy(&out, bytes, sizeof(out));
  return out;
}

inline void mask_storeu_epi8(void* to, uint64_t mask, simde__m512i v) {
  uint8_t bytes[64];
  std::memcpy(bytes, &v, sizeof(bytes));
  for (int i = 0; i < 64; ++i) {
    if (mask >> i & 1) static_cast<uint8_t*>(to)[i] = bytes[i];
  }
}

}  // namespace edgekit::simde_gaps

#define _mm512_cvtepi32_ps(v) ::edgekit::simde_gaps::cvtepi32_ps(v)
#define _mm512_cvtps_epi32(v) ::edgekit::simde_gaps::cvtps_epi32(v)
#define _mm512_cvtepu8_epi32(v) ::edgekit::simde_gaps::cvtepu8_epi32(v)
#define _mm512_cvtepu8_epi16(v) ::edgekit::simde_gaps::cvtepu8_epi16(v)
#define _mm512_cvtepi32_epi8(v) ::edgekit::simde_gaps::cvtepi32_epi8(v)
#define _mm512_srai_epi32(v, count) ::edgekit::simde_gaps::srai_epi32(v, count)
#define _mm512_maskz_loadu_epi8(mask, from) ::edgekit::simde_gaps::maskz_loadu_epi8(mask, from)
#define _mm512_mask_storeu_epi8(to, mask, v) ::edgekit::simde_gaps::mask_storeu_epi8(to, mask, v)

#endif  // EDGEKIT_TESTS_SIMDE_IMMINTRIN_H_
