// What kernels of products in 256 bits have in common. Only for *_avx2.cc and *_avx_vnni.cc files, each with its own.
#ifndef EDGEKIT_KERNELS_SIMD_PRODUCTS_AVX2_H_
#define EDGEKIT_KERNELS_SIMD_PRODUCTS_AVX2_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace edgekit::avx2 {
namespace {

// The four bytes at `at` in every lane.
inline __m256i broadcast_dword(const void* at) {
  int32_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return _mm256_set1_epi32(bits);
}

// The sixteen bytes at `at` in both halves.
[[maybe_unused]] inline __m256i broadcast_16(const void* at) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(at)));
}

// sum += two products of 16-bit words in each lane, exactly. In assembly, since GCC 12 otherwise keeps some of a tile's
// sums in memory.
[[maybe_unused]] inline __attribute__((always_inline)) void multiply_add_words(__m256i& sum, __m256i a, __m256i b) {
  __m256i product;
  asm("vpmaddwd %[b], %[a], %[product]\n\t"
      "vpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [a] "x"(a), [b] "x"(b));
}

}  // namespace
}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_SIMD_PRODUCTS_AVX2_H_
