#include "kernels/gemm/conv_q8_source.h"

#include <algorithm>
#include <cstring>

namespace edgekit {
namespace {

// One past the highest byte that a view of bytes reaches; null while the view has no data yet.
const uint8_t* view_end(const TensorView& view) {
  if (view.data == nullptr) return nullptr;
  const uint8_t* last = view.as<const uint8_t>();
  for (int i = 0; i < view.rank; ++i) last += std::max<int64_t>(0, (view.dims[i] - 1) * view.strides[i]);
  return last + 1;
}

// Outputs whose taps first, first + dilation, ... all lie in [0, size), where first = output * stride - pad.
Span inner_outputs(int64_t size, int64_t out, int64_t stride, int64_t pad, int64_t reach) {
  const int64_t begin = pad > 0 ? (pad + stride - 1) / stride : 0;
  const int64_t last_first = size - 1 - reach + pad;
  const int64_t end = last_first < 0 ? 0 : last_first / stride + 1;
  return {std::min(begin, out), std::clamp<int64_t>(end, std::min(begin, out), out)};
}

uint8_t* fill(uint8_t* out, int32_t value, int64_t count) {
  std::memset(out, value & 0xff, static_cast<size_t>(count));
  return out + count;
}

uint8_t* copy(uint8_t* out, const uint8_t* from, int64_t count) {
  std::memcpy(out, from, static_cast<size_t>(count));
  return out + count;
}

// One run of a window; line: the image row at this group's first channel.
uint8_t* pack_run(const ConvQ8Source& s, const uint8_t* line, int64_t first_ix, uint8_t* out) {
  const int64_t taps = s.window.kernel_w;
  if (s.joined) {
    const int64_t left = std::clamp<int64_t>(-first_ix, 0, taps);
    const int64_t right = std::clamp<int64_t>(s.w - first_ix, left, taps);
    out = fill(out, s.x_zero, left * s.channels);
    if (right > left) out = copy(out, line + (first_ix + left) * s.stride_w, (right - left) * s.channels);
    return fill(out, s.x_zero, (taps - right) * s.channels);
  }
  for (int64_t kx = 0; kx < taps; ++kx) {
    const int64_t ix = first_ix + kx * s.window.dilation_w;
    out = ix < 0 || ix >= s.w ? fill(out, s.x_zero, s.channels) : copy(out, line + ix * s.stride_w, s.channels);
  }
  return out;
}

}  // namespace

ConvQ8Source conv_q8_source(const TensorView& x, const TensorView& y, const ConvQ8Attrs& attrs) {
  ConvQ8Source s{};
  s.x = x.as<const uint8_t>();
  s.end = view_end(x);
  s.stride_n = x.strides[0];
  s.stride_h = x.strides[1];
  s.stride_w = x.strides[2];
  s.h = x.dims[1];
  s.w = x.dims[2];
  s.out_h = y.dims[1];
  s.out_w = y.dims[2];
  s.window = conv_window(attrs);
  s.channels = x.dims[3] / attrs.groups;
  s.kg = attrs.kg;
  s.run_bytes = int64_t{attrs.kernel_w} * s.channels;
  s.run_groups = (s.run_bytes + s.kg - 1) / s.kg;
  s.x_zero = attrs.x_zero;
  // A stride along an extent of 1 means nothing.
  const bool dense = s.w == 1 || s.stride_w == s.channels;
  s.joined = attrs.kernel_w == 1 || (dense && attrs.dilation_w == 1);
  return s;
}

int64_t ConvQ8Source::direct_offsets(int64_t* offsets) const {
  int64_t reach = 0;
  for (int64_t ky = 0; ky < window.kernel_h; ++ky) {
    for (int64_t group = 0; group < run_groups; ++group, ++offsets) {
      const int64_t byte = group * kg;
      const int64_t in_run = joined ? byte : byte / channels * window.dilation_w * stride_w + byte % channels;
      *offsets = ky * window.dilation_h * stride_h + in_run;
      reach = std::max(reach, *offsets + kg);
    }
  }
  return reach;
}

Span ConvQ8Source::inner_rows() const {
  return inner_outputs(h, out_h, window.stride_h, window.pad_top, int64_t{window.kernel_h - 1} * window.dilation_h);
}

Span ConvQ8Source::inner_columns() const {
  return inner_outputs(w, out_w, window.stride_w, window.pad_left, int64_t{window.kernel_w - 1} * window.dilation_w);
}

void pack_window(const ConvQ8Source& s, int64_t group, const OutputCursor& at, uint8_t* out) {
  const int64_t first_iy = s.window.first_row(at.oy);
  const int64_t first_ix = s.window.first_column(at.ox);
  const uint8_t* base = s.x + at.n * s.stride_n + group * s.channels;
  const int64_t run = s.run_groups * s.kg;
  for (int64_t ky = 0; ky < s.window.kernel_h; ++ky, out += run) {
    const int64_t iy = first_iy + ky * s.window.dilation_h;
    if (iy < 0 || iy >= s.h) {
      fill(out, s.x_zero, s.run_bytes);
    } else {
      pack_run(s, base + iy * s.stride_h, first_ix, out);
    }
    fill(out + s.run_bytes, 0, run - s.run_bytes);
  }
}

}  // namespace edgekit
