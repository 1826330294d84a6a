// Quantizes dense rows, 16 elements at a time; all else is bound by loads and stores that AVX2 does as well.
#include <immintrin.h>

#include "kernels/convert/convert.h"

namespace edgekit::avx512_vnni {

void quantize_row(const QuantizeRow& r) noexcept {
  QuantizeRow rest = r;
  if (r.x_stride == 1 && r.y_stride == 1) {
    const int32_t low = r.is_signed ? -128 : 0;
    const __m512 least = _mm512_set1_ps(static_cast<float>(low - r.zero));
    const __m512 most = _mm512_set1_ps(static_cast<float>(low + 255 - r.zero));
    const __m512 scale = _mm512_set1_ps(r.scale);
    const __m512i zero = _mm512_set1_epi32(r.zero);
    int64_t i = 0;
    for (; i + 16 <= r.n; i += 16) {
      __m512 v = _mm512_div_ps(_mm512_loadu_ps(r.x + i), scale);
      v = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v);  // NaN becomes 0 before the clamp
      v = _mm512_min_ps(_mm512_max_ps(v, least), most);
      const __m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(v), zero);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(r.y + i), _mm512_cvtepi32_epi8(q));
    }
    rest.x += i;
    rest.y += i;
    rest.n -= i;
  }
  avx2::quantize_row(rest);
}

void dequantize_row(const DequantizeRow& r) noexcept { avx2::dequantize_row(r); }

void interleave_3(const InterleaveRows& r) noexcept { avx2::interleave_3(r); }

}  // namespace edgekit::avx512_vnni
