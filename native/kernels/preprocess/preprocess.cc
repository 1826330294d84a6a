#include "kernels/preprocess/preprocess.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "core/cpu_features.h"
#include "core/tensor.h"
#include "kernels/preprocess/rows.h"
#include "kernels/preprocess/taps.h"

namespace edgekit::preprocess {
namespace {

const RowKernels& best_rows(bool force_scalar) {
  if (force_scalar) return scalar_rows();
#if defined(__x86_64__)
  // An EDGEKIT_ISA that can't be honoured is reported where a program is loaded; here the reference serves as well.
  const Result<Isa> isa = active_isa();
  if (isa.is_ok() && isa.value() != Isa::kScalar) return avx2_rows();
#endif
  return scalar_rows();
}

bool is_yuv(PixelFormat format) { return format == PixelFormat::kNv12 || format == PixelFormat::kI420; }

int channels_of(PixelFormat format, int plane) {
  if (format == PixelFormat::kRgb || format == PixelFormat::kBgr) return 3;
  return format == PixelFormat::kNv12 && plane == 1 ? 2 : 1;
}

// BT.601 and BT.709: luma weights of red and blue; the rest follows from them.
YuvCoefficients yuv_coefficients(YuvMatrix matrix, YuvRange range) {
  const double red = matrix == YuvMatrix::kBt601 ? 0.299 : 0.2126;
  const double blue = matrix == YuvMatrix::kBt601 ? 0.114 : 0.0722;
  const double green = 1 - red - blue;
  const bool studio = range == YuvRange::kStudio;
  const double luma = studio ? 255.0 / 219 : 1.0;
  const double chroma = studio ? 255.0 / 224 : 1.0;
  const auto fixed = [](double value) { return static_cast<int16_t>(std::lround(value * 8192)); };
  return {static_cast<int16_t>(studio ? 16 : 0),
          fixed(luma),
          fixed(2 * (1 - red) * chroma),
          fixed(-2 * blue * (1 - blue) / green * chroma),
          fixed(-2 * red * (1 - red) / green * chroma),
          fixed(2 * (1 - blue) * chroma)};
}

Status invalid(const std::string& what) { return {StatusCode::kInvalidInput, "preprocess: " + what}; }

Status check(const Config& c) {
  const auto side_ok = [](int side) { return side >= 1 && side <= kMaxSide; };
  if (!side_ok(c.source_width) || !side_ok(c.source_height)) return invalid("source size must be 1..32768 pixels");
  if (!side_ok(c.resized_width) || !side_ok(c.resized_height)) return invalid("resized size must be 1..32768 pixels");
  if (!side_ok(c.output_width) || !side_ok(c.output_height)) return invalid("output size must be 1..32768 pixels");
  if (c.crop_x < 0 || c.crop_y < 0 || c.crop_width < 1 || c.crop_height < 1 ||
      c.crop_width > c.source_width - c.crop_x || c.crop_height > c.source_height - c.crop_y) {
    return invalid("the crop must lie inside the source");
  }
  if (std::abs(static_cast<int64_t>(c.offset_x)) > kMaxSide || std::abs(static_cast<int64_t>(c.offset_y)) > kMaxSide) {
    return invalid("offset out of range");
  }
  if (c.dtype != Dtype::kF32 && c.dtype != Dtype::kU8 && c.dtype != Dtype::kS8)
    return invalid("dtype must be f32, u8 or s8");
  if (c.dtype != Dtype::kF32 && !(c.quant_scale > 0 && std::isfinite(c.quant_scale))) {
    return invalid("the quantization scale must be positive");
  }
  return Status::ok();
}

uint8_t quantize(float x, const Config& c) {
  const float least = c.dtype == Dtype::kU8 ? 0 : -128;
  // std::nearbyint rounds half to even in the default mode; NaN can't occur (finite gain, offset and scale).
  const float q = std::nearbyint(x / c.quant_scale) + static_cast<float>(c.zero_point);
  return static_cast<uint8_t>(static_cast<int32_t>(std::clamp(q, least, least + 255)));
}

}  // namespace

int plane_row_bytes(PixelFormat format, int plane, int width) {
  const int half = (width + 1) / 2;
  if (plane == 0) return width * channels_of(format, 0);
  return format == PixelFormat::kNv12 ? 2 * half : half;
}

int plane_rows(PixelFormat format, int plane, int height) {
  static_cast<void>(format);
  return plane == 0 ? height : (height + 1) / 2;
}

const char* isa_name(bool force_scalar) { return best_rows(force_scalar).name; }

// One plane's tables and scratch.
struct PlaneTables {
  int channels = 0;
  int span_begin = 0, span_count = 0;  // samples of a row that the horizontal taps touch
  StepTaps rows, columns;              // bilinear and nearest; columns relative to span_begin
  std::vector<uint32_t> pair_weights;
  Taps area_rows, area_columns;
  std::vector<int16_t> blended;      // t of one row
  std::vector<uint8_t> filtered[3];  // v of one row, one a channel
};

struct Preprocessor::Impl {
  std::mutex mutex;  // the scratch rows serve one thread at a time
  Config config;
  const RowKernels* rows = nullptr;
  int columns_begin = 0, columns_end = 0, rows_begin = 0, rows_end = 0;  // output pixels that show the picture
  std::vector<PlaneTables> planes;
  YuvCoefficients yuv{};
  std::vector<uint8_t> colors[3];  // r, g, b after step 5 when it is not the identity
  std::vector<uint8_t> mixed;      // interleaved row, and quantized rows
  float gain[3][24], offset[3][24], gain_mixed[24], offset_mixed[24];
  uint8_t table[3][256];  // level -> q
  bool identity = false;  // q == level in every channel
  float pad_f32[3];
  uint8_t pad_q[3];
  int network_channels = 3;

  void prepare_plane(int index);
  void prepare_values();
  void filter_plane(int index, const Image& image, int y);
  void color_row(const uint8_t* out[3]);
  template <typename T>
  void store_row(const uint8_t* const* levels, int y, T* output);
  template <typename T>
  void fill(T* output, int y, int begin, int end);
  template <typename T>
  void run(const Image& image, T* output);
};

void Preprocessor::Impl::prepare_plane(int index) {
  PlaneTables& plane = planes[index];
  const Config& c = config;
  const int sub = index == 0 ? 1 : 2;
  plane.channels = channels_of(c.format, index);
  const auto axis = [&](int begin, int length, int resized) {
    return Axis{begin, length, resized, sub, begin / sub, (begin + length + sub - 1) / sub};
  };
  const Axis horizontal = axis(c.crop_x, c.crop_width, c.resized_width);
  const Axis vertical = axis(c.crop_y, c.crop_height, c.resized_height);
  const int x0 = columns_begin - c.offset_x, x1 = columns_end - c.offset_x;
  const int y0 = rows_begin - c.offset_y, y1 = rows_end - c.offset_y;
  const int width = columns_end - columns_begin;
  if (c.interpolation == Interpolation::kArea) {
    plane.area_rows = area_taps(vertical, y0, y1);
    plane.area_columns = area_taps(horizontal, x0, x1);
    const Taps& taps = plane.area_columns;
    plane.span_begin = taps.first.front();
    plane.span_count = taps.first.back() + taps.offsets[width] - taps.offsets[width - 1] - plane.span_begin;
    for (int32_t& first : plane.area_columns.first) first -= plane.span_begin;
  } else {
    const bool nearest = c.interpolation == Interpolation::kNearest;
    plane.rows = step_taps(vertical, y0, y1, nearest, 15);
    plane.columns = step_taps(horizontal, x0, x1, nearest, 14);
    plane.span_begin = plane.columns.first.front();
    const bool second = plane.columns.weight.back() != 0;
    plane.span_count = plane.columns.first.back() + (second ? 2 : 1) - plane.span_begin;
    const int padded = (width + kRowSlack - 1) / kRowSlack * kRowSlack;
    plane.columns.first.resize(padded, plane.columns.first.back());
    plane.columns.weight.resize(padded, plane.columns.weight.back());
    for (int32_t& first : plane.columns.first) first -= plane.span_begin;
    for (int32_t weight : plane.columns.weight) {
      plane.pair_weights.push_back(static_cast<uint32_t>((1 << 14) - weight) | static_cast<uint32_t>(weight) << 16);
    }
  }
  plane.blended.assign(static_cast<size_t>(plane.span_count) * plane.channels + kRowSlack, 0);
  for (int ch = 0; ch < plane.channels; ++ch) plane.filtered[ch].assign(width + 2 * kRowSlack, 0);
}

void Preprocessor::Impl::prepare_values() {
  const Config& c = config;
  network_channels = c.order == ChannelOrder::kGray ? 1 : 3;
  identity = true;
  for (int ch = 0; ch < network_channels; ++ch) {
    std::fill_n(gain[ch], 24, c.gain[ch]);
    std::fill_n(offset[ch], 24, c.offset[ch]);
    for (int level = 0; level < 256; ++level) {
      const float scaled = static_cast<float>(level) * c.gain[ch];
      table[ch][level] = quantize(scaled + c.offset[ch], c);
      identity = identity && table[ch][level] == level;
    }
    pad_f32[ch] = c.pad[ch];
    pad_q[ch] = quantize(c.pad[ch], c);
  }
  for (int i = 0; i < 24; ++i) {
    gain_mixed[i] = c.gain[i % network_channels];
    offset_mixed[i] = c.offset[i % network_channels];
  }
  yuv = yuv_coefficients(c.matrix, c.range);
  const size_t width = static_cast<size_t>(c.output_width) + 2 * kRowSlack;
  for (auto& row : colors) row.assign(width, 0);
  mixed.assign(3 * width, 0);
}

// Steps 3 and 4 for output row y.
void Preprocessor::Impl::filter_plane(int index, const Image& image, int y) {
  PlaneTables& plane = planes[index];
  const int row = y - rows_begin;
  const int64_t stride = image.row_strides[index];
  const uint8_t* base = image.planes[index] + static_cast<int64_t>(plane.span_begin) * plane.channels;
  const int count = plane.span_count * plane.channels;
  uint8_t* out[3] = {plane.filtered[0].data(), plane.filtered[1].data(), plane.filtered[2].data()};
  const int width = columns_end - columns_begin;
  if (config.interpolation == Interpolation::kArea) {
    const Taps& taps = plane.area_rows;
    rows->accumulate(base + taps.first[row] * stride, stride, taps.weights.data() + taps.offsets[row],
                     taps.offsets[row + 1] - taps.offsets[row], count, plane.blended.data());
    const Taps& columns = plane.area_columns;
    filter_area(plane.blended.data(), {columns.first.data(), columns.offsets.data(), columns.weights.data(), width},
                plane.channels, out);
    return;
  }
  const uint8_t* first = base + plane.rows.first[row] * stride;
  const int weight = plane.rows.weight[row];
  rows->blend(first, weight == 0 ? first : first + stride, weight, count, plane.blended.data());
  rows->filter[plane.channels - 1](plane.blended.data(), {plane.columns.first.data(), plane.pair_weights.data(), width},
                                   out);
}

// Step 5: leaves the network's channels of the row in out.
void Preprocessor::Impl::color_row(const uint8_t* out[3]) {
  const int width = columns_end - columns_begin;
  const uint8_t* rgb[3];
  if (is_yuv(config.format)) {
    const bool nv12 = config.format == PixelFormat::kNv12;
    const uint8_t* source[3] = {planes[0].filtered[0].data(), planes[1].filtered[0].data(),
                                nv12 ? planes[1].filtered[1].data() : planes[2].filtered[0].data()};
    uint8_t* target[3] = {colors[0].data(), colors[1].data(), colors[2].data()};
    rows->yuv_to_rgb(source, yuv, width, target);
    std::copy_n(target, 3, rgb);
  } else {
    const bool gray = config.format == PixelFormat::kGray;
    for (int ch = 0; ch < 3; ++ch) {
      const int from = gray ? 0 : config.format == PixelFormat::kBgr ? 2 - ch : ch;
      rgb[ch] = planes[0].filtered[from].data();
    }
  }
  if (config.order == ChannelOrder::kGray) {
    out[0] = rgb[0];
    if (config.format != PixelFormat::kGray) {
      rows->rgb_to_gray(rgb, width, mixed.data());
      out[0] = mixed.data();
    }
    return;
  }
  for (int ch = 0; ch < 3; ++ch) out[ch] = rgb[config.order == ChannelOrder::kBgr ? 2 - ch : ch];
}

template <typename T>
void Preprocessor::Impl::fill(T* output, int y, int begin, int end) {
  const Config& c = config;
  const T* pad;
  if constexpr (sizeof(T) == 4) {
    pad = pad_f32;
  } else {
    pad = pad_q;
  }
  if (begin >= end) return;
  if (c.channels_first || network_channels == 1) {
    const int64_t plane = static_cast<int64_t>(c.output_width) * c.output_height;
    for (int ch = 0; ch < network_channels; ++ch) {
      std::fill_n(output + ch * plane + static_cast<int64_t>(y) * c.output_width + begin, end - begin, pad[ch]);
    }
    return;
  }
  T* row = output + (static_cast<int64_t>(y) * c.output_width + begin) * 3;
  for (int x = 0; x < end - begin; ++x) {
    for (int ch = 0; ch < 3; ++ch) row[3 * x + ch] = pad[ch];
  }
}

// Step 6.
template <typename T>
void Preprocessor::Impl::store_row(const uint8_t* const* levels, int y, T* output) {
  const Config& c = config;
  const int width = columns_end - columns_begin;
  const int64_t pixel = static_cast<int64_t>(y) * c.output_width + columns_begin;
  const bool planar = c.channels_first || network_channels == 1;
  if constexpr (sizeof(T) == 4) {
    if (!planar) {
      rows->interleave3(levels, width, mixed.data());
      rows->to_f32(mixed.data(), 3 * width, gain_mixed, offset_mixed, output + 3 * pixel);
      return;
    }
    const int64_t plane = static_cast<int64_t>(c.output_width) * c.output_height;
    for (int ch = 0; ch < network_channels; ++ch) {
      rows->to_f32(levels[ch], width, gain[ch], offset[ch], output + ch * plane + pixel);
    }
  } else {
    const uint8_t* quantized[3] = {levels[0], levels[1], levels[2]};
    const size_t row_bytes = static_cast<size_t>(c.output_width) + 2 * kRowSlack;
    for (int ch = 0; ch < network_channels && !identity; ++ch) {
      uint8_t* row = mixed.data() + ch * row_bytes;  // grey levels may lie here: in place is fine
      for (int x = 0; x < width; ++x) row[x] = table[ch][levels[ch][x]];
      quantized[ch] = row;
    }
    if (!planar) {
      rows->interleave3(quantized, width, output + 3 * pixel);
      return;
    }
    const int64_t plane = static_cast<int64_t>(c.output_width) * c.output_height;
    for (int ch = 0; ch < network_channels; ++ch) std::memcpy(output + ch * plane + pixel, quantized[ch], width);
  }
}

template <typename T>
void Preprocessor::Impl::run(const Image& image, T* output) {
  const Config& c = config;
  for (int y = 0; y < c.output_height; ++y) {
    if (y < rows_begin || y >= rows_end) {
      fill(output, y, 0, c.output_width);
      continue;
    }
    for (size_t plane = 0; plane < planes.size(); ++plane) filter_plane(static_cast<int>(plane), image, y);
    const uint8_t* levels[3] = {};
    color_row(levels);
    fill(output, y, 0, columns_begin);
    store_row(levels, y, output);
    fill(output, y, columns_end, c.output_width);
  }
}

Result<std::unique_ptr<Preprocessor>> Preprocessor::create(const Config& config) {
  EK_RETURN_IF_ERROR(check(config));
  auto impl = std::make_unique<Impl>();
  impl->config = config;
  impl->rows = &best_rows(config.force_scalar);
  impl->columns_begin = std::clamp(config.offset_x, 0, config.output_width);
  impl->columns_end = std::clamp(config.offset_x + config.resized_width, impl->columns_begin, config.output_width);
  impl->rows_begin = std::clamp(config.offset_y, 0, config.output_height);
  impl->rows_end = std::clamp(config.offset_y + config.resized_height, impl->rows_begin, config.output_height);
  if (impl->columns_begin == impl->columns_end || impl->rows_begin == impl->rows_end) {
    return invalid("no pixel of the picture falls into the output");
  }
  // A grey network needs no chroma of a grey picture, but YUV passes through RGB so that every source agrees.
  impl->planes.resize(plane_count(config.format));
  for (size_t plane = 0; plane < impl->planes.size(); ++plane) impl->prepare_plane(static_cast<int>(plane));
  impl->prepare_values();
  return std::unique_ptr<Preprocessor>(new Preprocessor(std::move(impl)));
}

Preprocessor::Preprocessor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Preprocessor::~Preprocessor() = default;

size_t Preprocessor::output_bytes() const {
  const Config& c = impl_->config;
  return static_cast<size_t>(c.output_width) * c.output_height * impl_->network_channels * dtype_bytes(c.dtype);
}

void Preprocessor::run(const Image& image, void* output) noexcept {
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  if (impl_->config.dtype == Dtype::kF32) {
    impl_->run(image, static_cast<float*>(output));
  } else {
    impl_->run(image, static_cast<uint8_t*>(output));
  }
}

}  // namespace edgekit::preprocess
