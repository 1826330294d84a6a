// 16 channels of 16 bits, for the transforms. Only for *_avx2.cc and *_avx512_vnni.cc files, each with its own.
#ifndef EDGEKIT_KERNELS_WINOGRAD_LANES_AVX2_H_
#define EDGEKIT_KERNELS_WINOGRAD_LANES_AVX2_H_

#include <immintrin.h>

#include <cstdint>

namespace edgekit::avx2 {
namespace {

struct Lanes16 {
  using Vector = __m256i;
  static constexpr int kCount = 16;
  static __m256i load_bytes(const uint8_t* x) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  }
  static __m256i load_taps(const int8_t* w) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
  static void store(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
  static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi16(a, b); }
  static __m256i sub(__m256i a, __m256i b) { return _mm256_sub_epi16(a, b); }
  static __m256i shl(__m256i a, int count) { return _mm256_slli_epi16(a, count); }
};

}  // namespace
}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_WINOGRAD_LANES_AVX2_H_
