#include "kernels/copy/transpose.h"

#include <algorithm>

// The registers used here are in the baseline of each architecture, so that no table by instruction set is needed.
#if defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace edgekit {
namespace {

// A block of this many elements a side keeps its rows and columns in the first-level cache and few pages.
constexpr int64_t kBlock = 32;

template <typename T>
void transpose_elements(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) y[j * y_step + i] = x[i * x_step + j];
  }
}

// A tile of kTile x kTile elements in registers.
template <typename T>
struct Tile {
  static constexpr int64_t kSide = 1;
  static void transpose(const T* x, int64_t, T* y, int64_t) { *y = *x; }
};

#if defined(__x86_64__)
template <>
struct Tile<uint32_t> {
  static constexpr int64_t kSide = 4;
  static void transpose(const uint32_t* x, int64_t x_step, uint32_t* y, int64_t y_step) {
    const auto row = [&](int64_t i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i * x_step)); };
    const __m128i r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
    const __m128i a = _mm_unpacklo_epi32(r0, r1), b = _mm_unpackhi_epi32(r0, r1);
    const __m128i c = _mm_unpacklo_epi32(r2, r3), d = _mm_unpackhi_epi32(r2, r3);
    const auto put = [&](int64_t j, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(y + j * y_step), v); };
    put(0, _mm_unpacklo_epi64(a, c));
    put(1, _mm_unpackhi_epi64(a, c));
    put(2, _mm_unpacklo_epi64(b, d));
    put(3, _mm_unpackhi_epi64(b, d));
  }
};

template <>
struct Tile<uint8_t> {
  static constexpr int64_t kSide = 8;
  static void transpose(const uint8_t* x, int64_t x_step, uint8_t* y, int64_t y_step) {
    const auto row = [&](int64_t i) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + i * x_step)); };
    const __m128i a = _mm_unpacklo_epi8(row(0), row(1)), b = _mm_unpacklo_epi8(row(2), row(3));
    const __m128i c = _mm_unpacklo_epi8(row(4), row(5)), d = _mm_unpacklo_epi8(row(6), row(7));
    const __m128i ab_low = _mm_unpacklo_epi16(a, b), ab_high = _mm_unpackhi_epi16(a, b);
    const __m128i cd_low = _mm_unpacklo_epi16(c, d), cd_high = _mm_unpackhi_epi16(c, d);
    const auto put = [&](int64_t j, __m128i v) {  // two columns of 8 bytes
      _mm_storel_epi64(reinterpret_cast<__m128i*>(y + j * y_step), v);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(y + (j + 1) * y_step), _mm_unpackhi_epi64(v, v));
    };
    put(0, _mm_unpacklo_epi32(ab_low, cd_low));
    put(2, _mm_unpackhi_epi32(ab_low, cd_low));
    put(4, _mm_unpacklo_epi32(ab_high, cd_high));
    put(6, _mm_unpackhi_epi32(ab_high, cd_high));
  }
};
#elif defined(__aarch64__)
template <>
struct Tile<uint32_t> {
  static constexpr int64_t kSide = 4;
  static void transpose(const uint32_t* x, int64_t x_step, uint32_t* y, int64_t y_step) {
    const uint32x4_t r0 = vld1q_u32(x), r1 = vld1q_u32(x + x_step);
    const uint32x4_t r2 = vld1q_u32(x + 2 * x_step), r3 = vld1q_u32(x + 3 * x_step);
    const uint64x2_t a = vreinterpretq_u64_u32(vtrn1q_u32(r0, r1)), b = vreinterpretq_u64_u32(vtrn2q_u32(r0, r1));
    const uint64x2_t c = vreinterpretq_u64_u32(vtrn1q_u32(r2, r3)), d = vreinterpretq_u64_u32(vtrn2q_u32(r2, r3));
    vst1q_u32(y, vreinterpretq_u32_u64(vtrn1q_u64(a, c)));
    vst1q_u32(y + y_step, vreinterpretq_u32_u64(vtrn1q_u64(b, d)));
    vst1q_u32(y + 2 * y_step, vreinterpretq_u32_u64(vtrn2q_u64(a, c)));
    vst1q_u32(y + 3 * y_step, vreinterpretq_u32_u64(vtrn2q_u64(b, d)));
  }
};

template <>
struct Tile<uint8_t> {
  static constexpr int64_t kSide = 8;
  static void transpose(const uint8_t* x, int64_t x_step, uint8_t* y, int64_t y_step) {
    uint8x8_t r[8];
    for (int i = 0; i < 8; ++i) r[i] = vld1_u8(x + i * x_step);
    uint16x4_t low[4], high[4];  // of rows 2i and 2i + 1: even and odd columns
    for (int i = 0; i < 4; ++i) {
      low[i] = vreinterpret_u16_u8(vtrn1_u8(r[2 * i], r[2 * i + 1]));
      high[i] = vreinterpret_u16_u8(vtrn2_u8(r[2 * i], r[2 * i + 1]));
    }
    const auto put = [&](const uint16x4_t(&v)[4], int64_t column) {
      const uint32x2_t a = vreinterpret_u32_u16(vtrn1_u16(v[0], v[1])), b = vreinterpret_u32_u16(vtrn2_u16(v[0], v[1]));
      const uint32x2_t c = vreinterpret_u32_u16(vtrn1_u16(v[2], v[3])), d = vreinterpret_u32_u16(vtrn2_u16(v[2], v[3]));
      vst1_u8(y + column * y_step, vreinterpret_u8_u32(vtrn1_u32(a, c)));
      vst1_u8(y + (column + 2) * y_step, vreinterpret_u8_u32(vtrn1_u32(b, d)));
      vst1_u8(y + (column + 4) * y_step, vreinterpret_u8_u32(vtrn2_u32(a, c)));
      vst1_u8(y + (column + 6) * y_step, vreinterpret_u8_u32(vtrn2_u32(b, d)));
    };
    put(low, 0);
    put(high, 1);
  }
};
#endif

template <typename T>
void transpose_block(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = Tile<T>::kSide;
  const int64_t whole_rows = rows - rows % kSide, whole_columns = columns - columns % kSide;
  for (int64_t j = 0; j < whole_columns; j += kSide) {
    for (int64_t i = 0; i < whole_rows; i += kSide) {
      Tile<T>::transpose(x + i * x_step + j, x_step, y + j * y_step + i, y_step);
    }
  }
  transpose_elements(x + whole_columns, x_step, y + whole_columns * y_step, y_step, whole_rows,
                     columns - whole_columns);
  transpose_elements(x + whole_rows * x_step, x_step, y + whole_rows, y_step, rows - whole_rows, columns);
}

// A few rows (channels of an image): each column of y is a handful of elements, so columns are walked along.
template <typename T, int rows>
void transpose_few_rows(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) y[j * y_step + i] = x[i * x_step + j];
  }
}

// A few columns: the same from the other side.
template <typename T, int columns>
void transpose_few_columns(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) y[j * y_step + i] = x[i * x_step + j];
  }
}

template <typename T>
void transpose(const void* x_data, int64_t x_step, void* y_data, int64_t y_step, int64_t rows, int64_t columns) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  if (rows == 2) return transpose_few_rows<T, 2>(x, x_step, y, y_step, columns);
  if (rows == 3) return transpose_few_rows<T, 3>(x, x_step, y, y_step, columns);
  if (columns == 2) return transpose_few_columns<T, 2>(x, x_step, y, y_step, rows);
  if (columns == 3) return transpose_few_columns<T, 3>(x, x_step, y, y_step, rows);
  for (int64_t i = 0; i < rows; i += kBlock) {
    for (int64_t j = 0; j < columns; j += kBlock) {
      transpose_block(x + i * x_step + j, x_step, y + j * y_step + i, y_step, std::min(kBlock, rows - i),
                      std::min(kBlock, columns - j));
    }
  }
}

}  // namespace

void transpose_plane(const void* x, int64_t x_step, void* y, int64_t y_step, int64_t rows, int64_t columns,
                     int element_bytes) noexcept {
  switch (element_bytes) {
    case 8:
      return transpose<uint64_t>(x, x_step, y, y_step, rows, columns);
    case 4:
      return transpose<uint32_t>(x, x_step, y, y_step, rows, columns);
    default:
      return transpose<uint8_t>(x, x_step, y, y_step, rows, columns);
  }
}

}  // namespace edgekit
