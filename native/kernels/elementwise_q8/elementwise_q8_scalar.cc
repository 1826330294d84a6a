// The reference that every other kernel equals bit for bit; any strides.
#include "kernels/elementwise_q8/elementwise_q8.h"

namespace edgekit::scalar {

void lut_q8_row(const LutQ8Row& r) noexcept {
  const uint8_t flip = r.is_signed ? 0x80 : 0;  // s8 + 128 as a byte
  for (int64_t i = 0; i < r.n; ++i) r.y[i * r.y_stride] = r.lut[r.x[i * r.x_stride] ^ flip];
}

void binary_q8_row(const BinaryQ8Row& r) noexcept {
  for (int64_t i = 0; i < r.n; ++i) {
    const int32_t a = q8_value(r.a[i * r.a_stride], r.is_signed);
    const int32_t b = q8_value(r.b[i * r.b_stride], r.is_signed);
    r.y[i * r.y_stride] = static_cast<uint8_t>(binary_q8_value(r.kind, r.params, a, b));
  }
}

}  // namespace edgekit::scalar
