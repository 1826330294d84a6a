// From the sums of a tile to bytes of y. Rows share registers: four of 16 columns or two of 32 are packed, looked up
// and added to as one.
#ifndef EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX512_VNNI_H_
#define EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX512_VNNI_H_

#include "kernels/gemm/gemm_q8.h"
#include "kernels/requantize/requantize_avx512_vnni.h"

namespace edgekit::avx512_vnni {

// Where rows lie in a register of 64 bytes, and which bytes of one exist.
template <int kVectors>
struct SharedRows {
  static constexpr int kShare = kVectors == 1 ? 4 : kVectors == 2 ? 2 : 1;
  __mmask64 part;
  bool whole;

  explicit SharedRows(int columns) : part(part_of_64(0, columns)), whole(columns == 16 * kVectors) {}

  __m512i load(const uint8_t* const* rows, int64_t channel, int count) const {
    if constexpr (kVectors == 1) {
      __m512i v = load(rows[0] + channel);
      if (count > 1) v = _mm512_inserti32x4(v, _mm512_castsi512_si128(load(rows[1] + channel)), 1);
      if (count > 2) v = _mm512_inserti32x4(v, _mm512_castsi512_si128(load(rows[2] + channel)), 2);
      if (count > 3) v = _mm512_inserti32x4(v, _mm512_castsi512_si128(load(rows[3] + channel)), 3);
      return v;
    } else if constexpr (kVectors == 2) {
      __m512i v = load(rows[0] + channel);
      if (count > 1) v = _mm512_inserti64x4(v, _mm512_castsi512_si256(load(rows[1] + channel)), 1);
      return v;
    } else {
      return load(rows[0] + channel);
    }
  }

  void store(uint8_t* const* rows, int64_t channel, int count, __m512i v) const {
    if constexpr (kVectors == 1) {
      store_16(rows[0] + channel, _mm512_castsi512_si128(v));
      if (count > 1) store_16(rows[1] + channel, _mm512_extracti32x4_epi32(v, 1));
      if (count > 2) store_16(rows[2] + channel, _mm512_extracti32x4_epi32(v, 2));
      if (count > 3) store_16(rows[3] + channel, _mm512_extracti32x4_epi32(v, 3));
    } else if constexpr (kVectors == 2) {
      store_32(rows[0] + channel, _mm512_castsi512_si256(v));
      if (count > 1) store_32(rows[1] + channel, _mm512_extracti64x4_epi64(v, 1));
    } else if (kVectors == 4 && whole) {
      _mm512_storeu_si512(rows[0] + channel, v);
    } else {
      _mm512_mask_storeu_epi8(rows[0] + channel, part, v);
    }
  }

  // Bytes 16 i and on of a row.
  __m128i load_16(const uint8_t* row, int i) const {
    if (whole) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16 * i));
    return _mm512_castsi512_si128(_mm512_maskz_loadu_epi8(part >> 16 * i & 0xffff, row + 16 * i));
  }

 private:
  __m512i load(const uint8_t* row) const { return _mm512_maskz_loadu_epi8(part, row); }

  // Stores without a mask are cheaper on some cores.
  void store_16(uint8_t* row, __m128i v) const {
    if (whole) return _mm_storeu_si128(reinterpret_cast<__m128i*>(row), v);
    _mm512_mask_storeu_epi8(row, part, _mm512_castsi128_si512(v));
  }
  void store_32(uint8_t* row, __m256i v) const {
    if (whole) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(row), v);
    _mm512_mask_storeu_epi8(row, part, _mm512_castsi256_si512(v));
  }
};

// Packed bytes of the rows of one register.
template <bool kBelowOne, int kRows, int kVectors>
inline __attribute__((always_inline)) __m512i pack_rows(const GemmQ8Rows& t, const __m512i (&sums)[kRows][kVectors],
                                                        int first, int count) {
  constexpr int kShare = SharedRows<kVectors>::kShare;
  __m512i v[4];
#pragma GCC unroll 4
  for (int lane = 0; lane < 4; ++lane) {
    const int row = kShare == 1 ? 0 : lane / kVectors;
    const int i = kShare == 1 ? (lane < kVectors ? lane : kVectors - 1) : lane % kVectors;
    v[lane] = round_scaled<kBelowOne>(sums[row < count ? first + row : first][i], t.scale + 16 * i, *t.requantize);
  }
  return order_lanes(pack_lanes(v, *t.requantize));
}

// Tables and residuals. Not inlined: copies of it in every tile would drive the loops out of the instruction cache.
template <int kVectors>
__attribute__((noinline)) void finish_packed(const GemmQ8Rows& t, int64_t first, int rows, const __m512i* packed) {
  constexpr int kShare = SharedRows<kVectors>::kShare;
  const RequantizeQ8& p = *t.requantize;
  const SharedRows<kVectors> shared(t.columns);
  for (int r = 0; r < rows; r += kShare, ++packed) {
    const int count = rows - r < kShare ? rows - r : kShare;
    __m512i bytes = *packed;
    if (p.lut != nullptr) bytes = look_up(bytes, p);
    if (p.add) bytes = add_64(bytes, shared.load(t.residual + first + r, t.channel, count), p.residual);
    shared.store(t.y + first + r, t.channel, count, bytes);
  }
}

// The same with the residual added.
template <int kRows, int kVectors>
inline __attribute__((always_inline)) __m512i add_rows(const GemmQ8Rows& t, int64_t row_of_tile,
                                                       const SharedRows<kVectors>& shared,
                                                       const __m512i (&sums)[kRows][kVectors], int first, int count) {
  constexpr int kShare = SharedRows<kVectors>::kShare;
  const RequantizeQ8& p = *t.requantize;
  __m512i v[4];
#pragma GCC unroll 4
  for (int lane = 0; lane < 4; ++lane) {
    const int row = kShare == 1 ? 0 : lane / kVectors;
    const int i = kShare == 1 ? (lane < kVectors ? lane : kVectors - 1) : lane % kVectors;
    const int from = row < count ? first + row : first;
    const uint8_t* residual = t.residual[row_of_tile + from] + t.channel;
    v[lane] = add_directly(sums[from][i], t.scale + 16 * i, shared.load_16(residual, i), p);
  }
  const AddQ8& add = p.residual;
  return order_lanes(pack_lanes(
      v, ByteRange(add.zero, add.zero + static_cast<int32_t>(add.v_min), add.zero + static_cast<int32_t>(add.v_max))));
}

template <int kRows, int kVectors>
inline __attribute__((always_inline)) void finish_added(const GemmQ8Rows& t, int64_t first,
                                                        const __m512i (&sums)[kRows][kVectors]) {
  constexpr int kShare = SharedRows<kVectors>::kShare;
  const SharedRows<kVectors> shared(t.columns);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r += kShare) {
    const int count = kRows - r < kShare ? kRows - r : kShare;
    shared.store(t.y + first + r, t.channel, count, add_rows(t, first, shared, sums, r, count));
  }
}

template <bool kBelowOne, int kRows, int kVectors>
inline __attribute__((always_inline)) void finish_scaled(const GemmQ8Rows& t, int64_t first,
                                                         const __m512i (&sums)[kRows][kVectors]) {
  constexpr int kShare = SharedRows<kVectors>::kShare;
  const bool is_plain = t.requantize->lut == nullptr && !t.requantize->add;
  const SharedRows<kVectors> shared(t.columns);
  __m512i packed[(kRows + kShare - 1) / kShare];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r += kShare) {
    packed[r / kShare] = pack_rows<kBelowOne>(t, sums, r, kRows - r < kShare ? kRows - r : kShare);
  }
  if (!is_plain) return finish_packed<kVectors>(t, first, kRows, packed);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r += kShare) {
    shared.store(t.y + first + r, t.channel, kRows - r < kShare ? kRows - r : kShare, packed[r / kShare]);
  }
}

template <int kRows, int kVectors>
inline __attribute__((always_inline)) void finish_rows(const GemmQ8Rows& t, int64_t first,
                                                       const __m512i (&sums)[kRows][kVectors]) {
  if (t.requantize->adds_directly) return finish_added(t, first, sums);
  if (t.requantize->scale_below_one) return finish_scaled<true>(t, first, sums);
  finish_scaled<false>(t, first, sums);
}

}  // namespace edgekit::avx512_vnni

#endif  // EDGEKIT_KERNELS_GEMM_FINISH_ROWS_AVX512_VNNI_H_
