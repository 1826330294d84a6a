// The reference that every other kernel equals bit for bit; any strides.
#include "kernels/convert/convert.h"

namespace edgekit::scalar {

void quantize_row(const QuantizeRow& r) noexcept {
  for (int64_t i = 0; i < r.n; ++i) {
    r.y[i * r.y_stride] = static_cast<uint8_t>(quantize_value(r.x[i * r.x_stride], r.scale, r.zero, r.is_signed));
  }
}

void dequantize_row(const DequantizeRow& r) noexcept {
  for (int64_t i = 0; i < r.n; ++i) {
    r.y[i * r.y_stride] = dequantize_value(q8_value(r.x[i * r.x_stride], r.is_signed), r.scale, r.zero);
  }
}

void interleave_3(const InterleaveRows& r) noexcept {
  for (int64_t i = 0; i < r.n; ++i) {
    for (int row = 0; row < 3; ++row) r.y[3 * i + row] = r.x[row * r.x_step + i];
  }
}

}  // namespace edgekit::scalar
