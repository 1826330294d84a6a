// What the AVX-512 depthwise kernels share: units of 64, 32 or 16 channels, one i32 sum each in a register, and their
// way to y. Only for *_avx512_vnni.cc.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX512_VNNI_H_
#define EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX512_VNNI_H_

#include "kernels/depthwise/quads.h"
#include "kernels/requantize/requantize_avx512_vnni.h"

// Loops over registers. Portable code has none to keep, and takes minutes to compile unrolled.
#if defined(EDGEKIT_SIMDE)
#define EK_UNROLL(n)
#define EK_INLINE inline
#else
#define EK_UNROLL(n) _Pragma(EK_UNROLL_TEXT(GCC unroll n))
#define EK_UNROLL_TEXT(text) #text
#define EK_INLINE inline __attribute__((always_inline))
#endif

namespace edgekit::avx512_vnni {

// A unit's packed weights, as its sums lie in kVectors registers.
template <int kVectors>
struct PackedUnit {
  int32_t bias[16 * kVectors];
  float scale[16 * kVectors];
  int8_t w[];  // 64 * kVectors for each quad of taps
};

template <int kVectors>
constexpr size_t packed_unit_bytes(size_t quads) {
  return sizeof(PackedUnit<kVectors>) + quads * 64 * kVectors;
}

// GCC would load again what several instructions read, though there are registers left.
EK_INLINE __m512i load_once(const void* at) {
  __m512i v = _mm512_loadu_si512(at);
#if !defined(EDGEKIT_SIMDE)
  asm("" : "+v"(v));
#endif
  return v;
}

// How the channels of a unit lie in registers.
//   interleave(at, taps)   taps: the bytes of a channel in the pixels at[0] to at[3], a dword each
//   channel(i)             whose that dword is, i counted over all vectors
//   order(bytes)           of pack_lanes, a pixel's vectors side by side: to kPixels pixels in order
//   pixel(bytes, j)        pixel j of those, as a register of its size
//   join(pixels)           the reverse, of kPixels registers with the pixel at their start
template <int kVectors>
struct Lanes;

// In-lane unpacking and packing undo each other's order.
template <>
struct Lanes<4> {
  static constexpr int kPixels = 1;
  static constexpr int channel(int i) { return i / 16 * 4 + i % 16 / 4 * 16 + i % 4; }
  static EK_INLINE void interleave(const uint8_t* const (&at)[4], __m512i (&taps)[4]) {
    __m512i rows[4];
    EK_UNROLL(4)
    for (int i = 0; i < 4; ++i) rows[i] = load_once(at[i]);
    const __m512i low01 = _mm512_unpacklo_epi8(rows[0], rows[1]), high01 = _mm512_unpackhi_epi8(rows[0], rows[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(rows[2], rows[3]), high23 = _mm512_unpackhi_epi8(rows[2], rows[3]);
    taps[0] = _mm512_unpacklo_epi16(low01, low23);
    taps[1] = _mm512_unpackhi_epi16(low01, low23);
    taps[2] = _mm512_unpacklo_epi16(high01, high23);
    taps[3] = _mm512_unpackhi_epi16(high01, high23);
  }
  static __m512i order(__m512i bytes) { return bytes; }
  static __m512i pixel(__m512i bytes, int) { return bytes; }
  static void store(uint8_t* at, __m512i pixel) { _mm512_storeu_si512(at, pixel); }
  static __m512i join(const __m512i (&pixels)[1]) { return pixels[0]; }
};

// Two rows fill a register.
template <>
struct Lanes<2> {
  static constexpr int kPixels = 2;
  static constexpr int channel(int i) { return i / 16 * 8 + i % 16 / 8 * 16 + i % 8; }
  static EK_INLINE void interleave(const uint8_t* const (&at)[4], __m512i (&taps)[2]) {
    const auto row = [&](int i) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at[i])); };
    const auto rows = [&](int i, int j) { return _mm512_inserti64x4(_mm512_castsi256_si512(row(i)), row(j), 1); };
    // Word i of one half and word i of the other.
    const __m512i halves = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                            21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i even = rows(0, 2), odd = rows(1, 3);
    taps[0] = _mm512_permutexvar_epi16(halves, _mm512_unpacklo_epi8(even, odd));
    taps[1] = _mm512_permutexvar_epi16(halves, _mm512_unpackhi_epi8(even, odd));
  }
  static __m512i order(__m512i bytes) {
    const __m512i order = _mm512_set_epi32(15, 11, 14, 10, 7, 3, 6, 2, 13, 9, 12, 8, 5, 1, 4, 0);
    return _mm512_permutexvar_epi32(order, bytes);
  }
  static __m256i pixel(__m512i bytes, int j) {
    return j == 0 ? _mm512_castsi512_si256(bytes) : _mm512_extracti64x4_epi64(bytes, 1);
  }
  static void store(uint8_t* at, __m256i pixel) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), pixel); }
  static __m512i join(const __m512i (&pixels)[2]) {
    return _mm512_inserti64x4(pixels[0], _mm512_castsi512_si256(pixels[1]), 1);
  }
};

// Four rows fill a register; then lane i gets channels 4i to 4i + 3 of all, then their order.
template <>
struct Lanes<1> {
  static constexpr int kPixels = 4;
  static constexpr int channel(int i) { return i; }
  static EK_INLINE void interleave(const uint8_t* const (&at)[4], __m512i (&taps)[1]) {
    const __m512i lanes = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const auto row = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[i])); };
    __m512i rows = _mm512_broadcast_i32x4(row(0));
    rows = _mm512_mask_broadcast_i32x4(rows, 0x00f0, row(1));
    rows = _mm512_mask_broadcast_i32x4(rows, 0x0f00, row(2));
    rows = _mm512_mask_broadcast_i32x4(rows, 0xf000, row(3));
    taps[0] = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(lanes, rows), order);
  }
  static __m512i order(__m512i bytes) { return order_lanes(bytes); }
  static EK_INLINE __m128i pixel(__m512i bytes, int j) {
    if (j == 0) return _mm512_castsi512_si128(bytes);
    if (j == 1) return _mm512_extracti32x4_epi32(bytes, 1);
    return j == 2 ? _mm512_extracti32x4_epi32(bytes, 2) : _mm512_extracti32x4_epi32(bytes, 3);
  }
  static void store(uint8_t* at, __m128i pixel) { _mm_storeu_si128(reinterpret_cast<__m128i*>(at), pixel); }
  static __m512i join(const __m512i (&pixels)[4]) {
    const auto pair = [&](int i) {
      return _mm256_inserti128_si256(_mm512_castsi512_si256(pixels[i]), _mm512_castsi512_si128(pixels[i + 1]), 1);
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(pair(0)), pair(2), 1);
  }
};

// Bias and scale of channels [first, first + n).
template <int kVectors>
void pack_columns(const DepthwiseQ8Weights& w, int32_t first, int32_t n, PackedUnit<kVectors>& unit) {
  for (int32_t i = 0; i < 16 * kVectors; ++i) {
    const int32_t c = Lanes<kVectors>::channel(i);
    unit.bias[i] = c < n ? w.bias[first + c] : 0;
    unit.scale[i] = c < n ? w.scale[first + c] : 0.0f;
  }
}

// Stores pixels in order, of which `count` exist.
template <int kVectors>
EK_INLINE void store_pixels(__m512i bytes, int count, uint8_t* y, int64_t y_step) {
  using L = Lanes<kVectors>;
  EK_UNROLL(4)
  for (int j = 0; j < L::kPixels; ++j) {
    if (j < count) L::store(y + j * y_step, L::pixel(bytes, j));
  }
}

// Pixels of a unit that do not go to y as they are: they need a table or a residual, or only some channels exist there.
template <int kVectors>
void finish_pixels(const DepthwiseQ8Strip& s, const DepthwiseQ8Block& block, int row, int32_t ox, int count,
                   const uint8_t* from) {
  using L = Lanes<kVectors>;
  const RequantizeQ8& p = *s.requantize;
  const __mmask64 part = part_of_64(block.first, block.count);
  for (int i = 0; i < count; i += L::kPixels, from += 64) {
    __m512i bytes = _mm512_loadu_si512(from);
    if (p.lut != nullptr) bytes = look_up(bytes, p);
    const int64_t pixel = ox + i;
    if (p.add) {
      __m512i residual[L::kPixels];
      for (int j = 0; j < L::kPixels; ++j) {
        const uint8_t* at = s.residual[row] + (pixel + j) * s.residual_step + block.base;
        residual[j] = _mm512_maskz_loadu_epi8(i + j < count ? part : 0, at);
      }
      bytes = add_64(bytes, L::join(residual), p.residual);
    }
    alignas(64) uint8_t pixels[64];
    _mm512_store_si512(pixels, bytes);
    for (int j = 0; j < L::kPixels && i + j < count; ++j) {
      uint8_t* y = s.y[row] + (pixel + j) * s.y_step + block.base;
      const __m512i bytes_of_pixel = _mm512_maskz_loadu_epi8(part, pixels + 16 * kVectors * j);
      _mm512_mask_storeu_epi8(y, part, bytes_of_pixel);
    }
  }
}

}  // namespace edgekit::avx512_vnni

#endif  // EDGEKIT_KERNELS_DEPTHWISE_UNIT_AVX512_VNNI_H_
