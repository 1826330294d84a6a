// 32 elements at a time; the last few go to the scalar kernel, so that nothing is read or written past the end. The
// suffix _avx2 of the file's name is what has it compiled for AVX2; it holds only code of namespace edgekit::avx2.
#include <immintrin.h>

#include "kernels/_skeleton/skeleton.h"

namespace edgekit::avx2 {

void add_u8_32_avx2(const SkeletonRow& r) noexcept {
  int64_t i = 0;
  for (; i + 32 <= r.n; i += 32) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(r.a + i));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(r.b + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(r.y + i), _mm256_adds_epu8(a, b));
  }
  scalar::add_u8_1_scalar({r.a + i, r.b + i, r.y + i, r.n - i});
}

}  // namespace edgekit::avx2
