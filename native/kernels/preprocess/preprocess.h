// From a camera's picture to the network's input in one pass over the rows, with no intermediate picture.
//
// What every implementation computes, bit for bit (ISA files differ in speed only):
//
// 1. Geometry. Output pixel (x, y) shows resized pixel (x - offset_x, y - offset_y) when that lies in
//    [0, resized_width) x [0, resized_height), and padding otherwise. Resized pixel i of an axis looks at the source
//    position p = crop_begin + (i + 0.5) * crop_length / resized_length - 0.5 (pixel centres at half integers).
//    A chroma plane of NV12 or I420 has ceil(n / 2) samples; a sample covers two luma pixels and lies at their common
//    centre, so its position is p' = (p + 0.5) / 2 - 0.5.
// 2. Taps, in exact integer arithmetic. Bilinear: the two samples around p, clamped to the crop. Nearest: the sample
//    whose cell holds p + 0.5. Area: all samples that the cell [i, i + 1) * crop_length / resized_length covers, each
//    weighted by its covered share.
// 3. Vertical: t is the blend of rows times 128. Bilinear: with a weight w of 15 bits,
//    t = 128 * a + ((128 * (b - a) * w + 2^14) >> 15). Area: weights of 14 bits that sum to 2^14,
//    t = (sum(w * a) + 64) >> 7. Nearest: t = 128 * a.
// 4. Horizontal: weights of 14 bits that sum to 2^14, v = (sum(w * t) + 2^20) >> 21, a grey level 0..255.
//    Against real-number interpolation v is off by less than 0.52 grey levels (0.5 of them rounding).
// 5. Colour. YUV to RGB on the resized samples: with coefficients of 13 bits,
//    r = clamp((cy * (Y - y0) + crv * (V - 128) + 4096) >> 13), b and g likewise (ITU-R BT.601 and BT.709, with
//    studio or full range). RGB to grey: (9798 r + 19235 g + 3735 b + 2^14) >> 15.
// 6. Value: x = float(v) * gain[c] + offset[c], each operation rounded to float. Stored as it is (f32), or as
//    q = saturate(round_half_even(x / quant_scale) + zero_point) (u8, s8).
#ifndef EDGEKIT_KERNELS_PREPROCESS_PREPROCESS_H_
#define EDGEKIT_KERNELS_PREPROCESS_PREPROCESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/status.h"
#include "program_schema.h"

namespace edgekit::preprocess {

enum class PixelFormat { kRgb, kBgr, kGray, kNv12, kI420 };
enum class ChannelOrder { kRgb, kBgr, kGray };
enum class Interpolation { kBilinear, kNearest, kArea };
enum class YuvMatrix { kBt601, kBt709 };
enum class YuvRange { kStudio, kFull };

// A picture that somebody else owns. plane 0: pixels or Y; 1: U, or U and V interleaved (NV12); 2: V (I420).
struct Image {
  const uint8_t* planes[3] = {};
  int64_t row_strides[3] = {};  // in bytes; negative for bottom-up pictures
};

struct Config {
  PixelFormat format = PixelFormat::kRgb;
  YuvMatrix matrix = YuvMatrix::kBt601;
  YuvRange range = YuvRange::kStudio;
  int source_width = 0, source_height = 0;
  int crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;  // part of the source to show
  int resized_width = 0, resized_height = 0;                    // what the crop is resized to
  int offset_x = 0, offset_y = 0;                               // where it starts in the output; may be negative
  int output_width = 0, output_height = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  ChannelOrder order = ChannelOrder::kRgb;                 // of the network
  bool channels_first = true;                              // NCHW rather than NHWC
  Dtype dtype = Dtype::kF32;                               // kF32, kU8 or kS8
  float gain[3] = {1, 1, 1}, offset[3] = {}, pad[3] = {};  // a network channel each; pad is a value of x
  float quant_scale = 1;
  int zero_point = 0;
  bool force_scalar = false;
};

constexpr int kMaxSide = 32768;

inline int plane_count(PixelFormat format) {
  return format == PixelFormat::kI420 ? 3 : format == PixelFormat::kNv12 ? 2 : 1;
}
// Bytes of a row of a plane without padding, and its rows.
int plane_row_bytes(PixelFormat format, int plane, int width);
int plane_rows(PixelFormat format, int plane, int height);

// The tables for one source size and one output. Threads may share it: calls of run() go one after the other.
class Preprocessor {
 public:
  static Result<std::unique_ptr<Preprocessor>> create(const Config& config);
  ~Preprocessor();

  size_t output_bytes() const;
  // Writes the whole output, padding included. output: dense, aligned to its element. Allocates nothing.
  void run(const Image& image, void* output) noexcept;

 private:
  struct Impl;
  explicit Preprocessor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Whether the AVX2 or NEON rows are used unless force_scalar is set.
const char* isa_name(bool force_scalar);

}  // namespace edgekit::preprocess

#endif  // EDGEKIT_KERNELS_PREPROCESS_PREPROCESS_H_
