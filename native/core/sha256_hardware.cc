#include "core/cpu_features.h"
#include "core/sha256_blocks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace edgekit {

#if defined(__x86_64__)
namespace {

#define EK_SHA_NI __attribute__((target("sha,sse4.1,ssse3")))

// The instructions keep the eight words as two vectors, (a, b, e, f) and (c, d, g, h), highest first.
struct Halves {
  __m128i abef, cdgh;
};

EK_SHA_NI inline Halves load_state(const uint32_t* state) {
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state)), 0xB1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4)), 0x1B);
  return {_mm_alignr_epi8(badc, hgfe, 8), _mm_blend_epi16(hgfe, badc, 0xF0)};
}

EK_SHA_NI inline void store_state(Halves halves, uint32_t* state) {
  const __m128i feba = _mm_shuffle_epi32(halves.abef, 0x1B), dchg = _mm_shuffle_epi32(halves.cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace

bool has_sha256_hardware() noexcept { return cpu_has("sha_ni") && cpu_has("sse4_1") && cpu_has("ssse3"); }

EK_SHA_NI void sha256_blocks_hardware(uint32_t* state, const unsigned char* data, size_t blocks) noexcept {
  const __m128i byte_swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  Halves now = load_state(state);
  for (; blocks > 0; --blocks, data += 64) {
    const Halves before = now;
    __m128i words[4];  // the last 16 words of the message schedule, a ring of four vectors
    for (int i = 0; i < 4; ++i) {
      words[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i)), byte_swap);
    }
#pragma GCC unroll 16
    for (int group = 0; group < 16; ++group) {  // four rounds each
      __m128i& current = words[group % 4];
      if (group >= 4) {
        const __m128i last = words[(group + 3) % 4];
        const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(current, words[(group + 1) % 4]),
                                          _mm_alignr_epi8(last, words[(group + 2) % 4], 4));
        current = _mm_sha256msg2_epu32(sum, last);
      }
      const __m128i constants = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kSha256Rounds + 4 * group));
      const __m128i input = _mm_add_epi32(current, constants);
      now.cdgh = _mm_sha256rnds2_epu32(now.cdgh, now.abef, input);
      now.abef = _mm_sha256rnds2_epu32(now.abef, now.cdgh, _mm_shuffle_epi32(input, 0x0E));
    }
    now = {_mm_add_epi32(now.abef, before.abef), _mm_add_epi32(now.cdgh, before.cdgh)};
  }
  store_state(now, state);
}
#elif defined(__aarch64__)
bool has_sha256_hardware() noexcept { return cpu_has("sha2"); }

__attribute__((target("+crypto"))) void sha256_blocks_hardware(uint32_t* state, const unsigned char* data,
                                                               size_t blocks) noexcept {
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks > 0; --blocks, data += 64) {
    const uint32x4_t abcd_before = abcd, efgh_before = efgh;
    uint32x4_t words[4];  // the last 16 words of the message schedule, a ring of four vectors
    for (int i = 0; i < 4; ++i) words[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
    for (int group = 0; group < 16; ++group) {  // four rounds each
      uint32x4_t& current = words[group % 4];
      if (group >= 4) {
        current = vsha256su1q_u32(vsha256su0q_u32(current, words[(group + 1) % 4]), words[(group + 2) % 4],
                                  words[(group + 3) % 4]);
      }
      const uint32x4_t input = vaddq_u32(current, vld1q_u32(kSha256Rounds + 4 * group));
      const uint32x4_t abcd_old = abcd;
      abcd = vsha256hq_u32(abcd, efgh, input);
      efgh = vsha256h2q_u32(efgh, abcd_old, input);
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(state, abcd);
  vst1q_u32(state + 4, efgh);
}
#else
bool has_sha256_hardware() noexcept { return false; }
void sha256_blocks_hardware(uint32_t*, const unsigned char*, size_t) noexcept {}
#endif

}  // namespace edgekit
