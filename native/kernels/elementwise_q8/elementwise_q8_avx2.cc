// lut_q8 and binary_q8 on dense rows, 32 and 16 bytes at a time; other strides and the last elements go to the scalar
// form.
#include "kernels/elementwise_q8/elementwise_q8.h"
#include "kernels/requantize/requantize_avx2.h"

namespace edgekit::avx2 {
namespace {

inline __m128i load_16(const uint8_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

// Eight elements, as exact floats of their distance from the zero point.
inline __m256 centred(__m128i bytes, int32_t zero, bool is_signed) {
  const __m256i values = is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(values, _mm256_set1_epi32(zero)));
}

template <BinaryKind kKind>
inline __m256i combine_8(__m128i a, __m128i b, const BinaryQ8Row& r) {
  const AddQ8& p = r.params;
  const __m256 lhs = centred(a, p.lhs_zero, r.is_signed);
  const __m256 rhs = centred(b, p.rhs_zero, r.is_signed);
  const __m256 lhs_scale = _mm256_set1_ps(p.lhs_scale);
  __m256 v;
  if constexpr (kKind == BinaryKind::kMul) {
    v = _mm256_mul_ps(_mm256_mul_ps(lhs, rhs), lhs_scale);
  } else {
    const __m256 scaled_lhs = _mm256_mul_ps(lhs, lhs_scale);
    const __m256 scaled_rhs = _mm256_mul_ps(rhs, _mm256_set1_ps(p.rhs_scale));
    v = kKind == BinaryKind::kAdd ? _mm256_add_ps(scaled_lhs, scaled_rhs) : _mm256_sub_ps(scaled_lhs, scaled_rhs);
  }
  v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(p.v_min)), _mm256_set1_ps(p.v_max));
  return _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(p.zero));
}

// Elements i to i + 15. An operand is dense or one value for all.
template <BinaryKind kKind>
inline __m128i combine_16(const BinaryQ8Row& r, int64_t i) {
  const __m128i a = r.a_stride == 0 ? _mm_set1_epi8(static_cast<char>(*r.a)) : load_16(r.a + i);
  const __m128i b = r.b_stride == 0 ? _mm_set1_epi8(static_cast<char>(*r.b)) : load_16(r.b + i);
  const __m256i low = combine_8<kKind>(a, b, r);
  const __m256i high = combine_8<kKind>(_mm_srli_si128(a, 8), _mm_srli_si128(b, 8), r);
  return low_bytes(low, high);
}

inline void store_16(uint8_t* at, __m128i bytes) { _mm_storeu_si128(reinterpret_cast<__m128i*>(at), bytes); }

// 16 elements or more. The last group overlaps the one before; y may be a or b, so it is read before anything is
// written.
template <BinaryKind kKind>
void combine_groups(const BinaryQ8Row& r) {
  const __m128i last = combine_16<kKind>(r, r.n - 16);
  for (int64_t i = 0; i + 16 < r.n; i += 16) store_16(r.y + i, combine_16<kKind>(r, i));
  store_16(r.y + r.n - 16, last);
}

}  // namespace

void lut_q8_row(const LutQ8Row& r) noexcept {
  LutQ8Row rest = r;
  if (r.x_stride == 1 && r.y_stride == 1 && r.n >= 64) {
    uint8_t steps[256];
    fill_lut_steps(r.lut, steps);
    const __m256i flip = _mm256_set1_epi8(r.is_signed ? -128 : 0);
    int64_t i = 0;
    for (; i + 32 <= r.n; i += 32) {
      const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(r.x + i));
      const __m256i entry = look_up(_mm256_xor_si256(index, flip), steps);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(r.y + i), entry);
    }
    rest.x += i;
    rest.y += i;
    rest.n -= i;
  }
  scalar::lut_q8_row(rest);
}

void binary_q8_row(const BinaryQ8Row& r) noexcept {
  const bool dense = (r.a_stride == 0 || r.a_stride == 1) && (r.b_stride == 0 || r.b_stride == 1) && r.y_stride == 1;
  if (!dense || r.n < 16) return scalar::binary_q8_row(r);
  if (r.kind == BinaryKind::kAdd) return combine_groups<BinaryKind::kAdd>(r);
  if (r.kind == BinaryKind::kSub) return combine_groups<BinaryKind::kSub>(r);
  combine_groups<BinaryKind::kMul>(r);
}

}  // namespace edgekit::avx2
