// The reference rows of preprocess: the definitions of preprocess.h, written down plainly.
#include <algorithm>

#include "kernels/preprocess/rows.h"

namespace edgekit::preprocess {
namespace {

constexpr int32_t kHalf = 1 << 20;
constexpr int kShift = 21;

void blend(const uint8_t* a, const uint8_t* b, int weight_q15, int count, int16_t* t) noexcept {
  for (int i = 0; i < count; ++i) {
    t[i] = static_cast<int16_t>(128 * a[i] + ((128 * (b[i] - a[i]) * weight_q15 + (1 << 14)) >> 15));
  }
}

void accumulate(const uint8_t* rows, int64_t row_stride, const int16_t* weights_q14, int row_count, int count,
                int16_t* t) noexcept {
  constexpr int kBlock = 256;  // keeps the sums in L1 and lets the compiler vectorise
  int32_t sums[kBlock];
  for (int begin = 0; begin < count; begin += kBlock) {
    const int n = std::min(kBlock, count - begin);
    std::fill(sums, sums + n, 64);
    for (int r = 0; r < row_count; ++r) {
      const uint8_t* row = rows + r * row_stride + begin;
      const int32_t weight = weights_q14[r];
      for (int i = 0; i < n; ++i) sums[i] += weight * row[i];
    }
    for (int i = 0; i < n; ++i) t[begin + i] = static_cast<int16_t>(sums[i] >> 7);
  }
}

template <int kChannels>
void filter(const int16_t* t, const PairTaps& taps, uint8_t* const* out) noexcept {
  for (int i = 0; i < taps.count; ++i) {
    const int16_t* p = t + static_cast<int64_t>(taps.first[i]) * kChannels;
    const int32_t w0 = static_cast<int32_t>(taps.weights[i] & 0xffff);
    const int32_t w1 = static_cast<int32_t>(taps.weights[i] >> 16);
    for (int c = 0; c < kChannels; ++c) {
      out[c][i] = static_cast<uint8_t>((w0 * p[c] + w1 * p[kChannels + c] + kHalf) >> kShift);
    }
  }
}

uint8_t clamp_u8(int32_t value) { return static_cast<uint8_t>(std::clamp<int32_t>(value, 0, 255)); }

void yuv_to_rgb(const uint8_t* const* yuv, const YuvCoefficients& k, int count, uint8_t* const* rgb) noexcept {
  for (int i = 0; i < count; ++i) {
    const int32_t y = k.cy * (yuv[0][i] - k.y0) + 4096;
    const int32_t u = yuv[1][i] - 128;
    const int32_t v = yuv[2][i] - 128;
    rgb[0][i] = clamp_u8((y + k.crv * v) >> 13);
    rgb[1][i] = clamp_u8((y + k.cgu * u + k.cgv * v) >> 13);
    rgb[2][i] = clamp_u8((y + k.cbu * u) >> 13);
  }
}

void rgb_to_gray(const uint8_t* const* rgb, int count, uint8_t* gray) noexcept {
  for (int i = 0; i < count; ++i) {
    gray[i] = static_cast<uint8_t>((9798 * rgb[0][i] + 19235 * rgb[1][i] + 3735 * rgb[2][i] + (1 << 14)) >> 15);
  }
}

void interleave3(const uint8_t* const* in, int count, uint8_t* out) noexcept {
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < 3; ++c) out[3 * i + c] = in[c][i];
  }
}

void to_f32(const uint8_t* in, int count, const float* gain, const float* offset, float* out) noexcept {
  for (int begin = 0; begin < count; begin += 24) {
    const int n = std::min(24, count - begin);
    for (int i = 0; i < n; ++i) {
      const float scaled = static_cast<float>(in[begin + i]) * gain[i];
      out[begin + i] = scaled + offset[i];
    }
  }
}

}  // namespace

const RowKernels& scalar_rows() {
  static constexpr RowKernels kTable = {"scalar",   blend,       accumulate,  {filter<1>, filter<2>, filter<3>},
                                        yuv_to_rgb, rgb_to_gray, interleave3, to_f32};
  return kTable;
}

void filter_area(const int16_t* t, const AreaTaps& taps, int channels, uint8_t* const* out) noexcept {
  for (int i = 0; i < taps.count; ++i) {
    const int16_t* weights = taps.weights + taps.begin[i];
    const int n = taps.begin[i + 1] - taps.begin[i];
    const int16_t* p = t + static_cast<int64_t>(taps.first[i]) * channels;
    int32_t sums[3] = {kHalf, kHalf, kHalf};
    for (int k = 0; k < n; ++k) {
      for (int c = 0; c < channels; ++c) sums[c] += weights[k] * p[k * channels + c];
    }
    for (int c = 0; c < channels; ++c) out[c][i] = static_cast<uint8_t>(sums[c] >> kShift);
  }
}

}  // namespace edgekit::preprocess
