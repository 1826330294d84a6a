// 6 rows x 16 columns. vpmaddubsw multiplies bytes and adds pairs into 16 bits, which saturates; the pairs of this
// packing never reach that (see saturating_pairs in the schema), so the sums are exact. 12 sums, the ones, 4 bytes of A
// and products fill the 16 registers; B comes from memory.
#include <immintrin.h>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_tiles_avx2.h"
#include "kernels/simd/products_avx2.h"

namespace edgekit::avx2 {
namespace {

// sum += four products of a and b in each lane. In assembly, since GCC 12 otherwise renames the 12 sums until some live
// in memory.
inline __attribute__((always_inline)) void multiply_add(__m256i& sum, __m256i a, const int8_t* b, __m256i ones) {
  __m256i product;
  asm("vpmaddubsw %[b], %[a], %[product]\n\t"
      "vpmaddwd %[ones], %[product], %[product]\n\t"
      "vpaddd %[product], %[sum], %[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [a] "x"(a), [b] "m"(*reinterpret_cast<const __m256i_u*>(b)), [ones] "x"(ones));
}

// How a kind of forms changes four bytes; `with`: a dword in all lanes.
struct Plain {
  static __m256i change(__m256i four, __m256i) { return four; }
};
struct Ordered {
  static __m256i change(__m256i four, __m256i with) { return _mm256_shuffle_epi8(four, with); }
};
// In assembly, since GCC 12 otherwise reads `with` from memory each time, beside the weights.
struct Complemented {
  static __m256i change(__m256i four, __m256i with) {
    asm("vpxor %[with], %[four], %[four]" : [four] "+x"(four) : [with] "x"(with));
    return four;
  }
};

// Where the sums of a tile have got to.
struct Progress {
  const int64_t* offset;
  const int8_t* b;
  const int32_t* segment;
  const int32_t* order;

  // Where the depth groups of the next segment end.
  const int64_t* next_segment() {
    const int64_t* end = offset + (segment[1] - segment[0]);
    ++segment;
    return end;
  }

  void skip_part(int forms) {
    const int64_t rows = segment[forms] - segment[0];
    offset += rows;
    b += 64 * rows;
    if (order != nullptr) order += segment[forms] - segment[forms - 1];
    segment += forms;
  }
};

// One depth group: four(r) gives the bytes of row r.
template <int kRows, int kVectors, typename Four>
inline __attribute__((always_inline)) void multiply_group(const int8_t* b, __m256i ones,
                                                          __m256i (&sums)[kRows][kVectors], Four&& four) {
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const __m256i bytes = four(r);
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) multiply_add(sums[r][i], bytes, b + 32 * i, ones);
  }
}

// The depth groups of one segment, all of one form.
template <typename Form, int kRows, int kVectors>
inline __attribute__((always_inline)) void multiply_form(const uint8_t* const (&a)[kRows], uint32_t with, Progress& at,
                                                         __m256i (&sums)[kRows][kVectors]) {
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i change = _mm256_set1_epi32(static_cast<int32_t>(with));
  const int64_t* end = at.next_segment();
  for (; at.offset != end; ++at.offset, at.b += 64) {
    multiply_group(
        at.b, ones, sums, [&](int r) __attribute__((always_inline)) {
          return Form::change(broadcast_dword(a[r] + *at.offset), change);
        });
  }
}

// Those of the last form: each picks four of sixteen bytes.
template <int kRows, int kVectors>
inline __attribute__((always_inline)) void multiply_picked(const uint8_t* const (&a)[kRows], Progress& at,
                                                           __m256i (&sums)[kRows][kVectors]) {
  const __m256i ones = _mm256_set1_epi16(1);
  const int64_t* end = at.next_segment();
  for (; at.offset != end; ++at.offset, ++at.order, at.b += 64) {
    const __m256i order = broadcast_dword(at.order);
    multiply_group(
        at.b, ones, sums, [&](int r) __attribute__((always_inline)) {
          return _mm256_shuffle_epi8(broadcast_16(a[r] + *at.offset), order);
        });
  }
}

struct Products {
  // sums[r][i]: columns 8i to 8i + 7 of row first + r.
  template <int kRows, int kVectors>
  static inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first,
                                                             __m256i (&sums)[kRows][kVectors]) {
    const uint8_t* a[kRows];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      a[r] = t.a[first + r];
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i)
        sums[r][i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias + 8 * i));
    }
    Progress at{t.offsets, t.b, t.segments, t.orders};
#pragma GCC unroll 1
    for (int64_t part = 0; part < t.parts; ++part) {
      if (t.taken != nullptr && t.taken[part] == 0) {
        at.skip_part(t.forms());
        continue;
      }
      multiply_form<Plain>(a, 0, at, sums);
#pragma GCC unroll 1
      for (int form = 1; form < kFirstComplement; ++form) {
        multiply_form<Ordered>(a, kRowForm[form].order, at, sums);
      }
#pragma GCC unroll 1
      for (int form = kFirstComplement; form < kRowForms; ++form) {
        multiply_form<Complemented>(a, kRowForm[form].complement, at, sums);
      }
      if (at.order != nullptr) multiply_picked(a, at, sums);
    }
  }
};

}  // namespace

void gemm_u8s8_6x16_avx2(const GemmQ8Rows& t) noexcept {
  t.columns > 8 ? sweep_tiles<Products, 6, 2>(t) : sweep_tiles<Products, 6, 1>(t);
}

}  // namespace edgekit::avx2
