// The row kernels of preprocess, one table an ISA. The definitions are numbered in preprocess.h.
#ifndef EDGEKIT_KERNELS_PREPROCESS_ROWS_H_
#define EDGEKIT_KERNELS_PREPROCESS_ROWS_H_

#include <cstdint>

namespace edgekit::preprocess {

// Scratch rows may be read and written this many elements past their end, and tables are padded to a multiple of it.
constexpr int kRowSlack = 32;

// Two horizontal taps an output pixel: samples first[i] and first[i] + 1 with weights of 14 bits, the weight of
// the first in the low half of weights[i]. Both arrays are padded to a multiple of kRowSlack with valid entries.
struct PairTaps {
  const int32_t* first;
  const uint32_t* weights;
  int count;
};

// Any number of taps an output pixel: weights[begin[i] .. begin[i + 1]) from sample first[i] on.
struct AreaTaps {
  const int32_t* first;
  const int32_t* begin;
  const int16_t* weights;
  int count;
};

struct YuvCoefficients {
  int16_t y0;                      // black level
  int16_t cy, crv, cgu, cgv, cbu;  // 13 fractional bits
};

struct RowKernels {
  const char* name;

  // Definition 3, bilinear and nearest. Source rows: count readable bytes, any alignment. t: scratch.
  void (*blend)(const uint8_t* a, const uint8_t* b, int weight_q15, int count, int16_t* t) noexcept;

  // Definition 3, area. row_count rows of count readable bytes, row_stride bytes apart, the first at rows.
  void (*accumulate)(const uint8_t* rows, int64_t row_stride, const int16_t* weights_q14, int row_count, int count,
                     int16_t* t) noexcept;

  // Definition 4 for rows of 1, 2 and 3 interleaved channels; out: one scratch row a channel.
  void (*filter[3])(const int16_t* t, const PairTaps& taps, uint8_t* const* out) noexcept;

  // Definition 5; all rows are scratch. r, g, b may not overlap y, u, v.
  void (*yuv_to_rgb)(const uint8_t* const* yuv, const YuvCoefficients& k, int count, uint8_t* const* rgb) noexcept;
  void (*rgb_to_gray)(const uint8_t* const* rgb, int count, uint8_t* gray) noexcept;

  // Three scratch rows to one of interleaved samples; out: exactly 3 * count bytes are written.
  void (*interleave3)(const uint8_t* const* in, int count, uint8_t* out) noexcept;

  // Definition 6: sample i uses gain[i % 24] and offset[i % 24]. out: exactly count floats are written.
  void (*to_f32)(const uint8_t* in, int count, const float* gain, const float* offset, float* out) noexcept;
};

const RowKernels& scalar_rows();
#if defined(__x86_64__)
const RowKernels& avx2_rows();
#endif

// Definition 4 for area taps and any number of interleaved channels, shared by all ISAs.
void filter_area(const int16_t* t, const AreaTaps& taps, int channels, uint8_t* const* out) noexcept;

}  // namespace edgekit::preprocess

#endif  // EDGEKIT_KERNELS_PREPROCESS_ROWS_H_
