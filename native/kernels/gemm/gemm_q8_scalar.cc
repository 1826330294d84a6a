// The reference that every other kernel equals bit for bit. Takes any panel width and depth group, u8 and s8.
#include "kernels/gemm/gemm_q8.h"

namespace edgekit::scalar {
namespace {

uint8_t formed_byte(const uint8_t* bytes, RowForm form, int k) {
  return static_cast<uint8_t>(bytes[form.order >> (8 * k) & 15] ^ (form.complement >> (8 * k)));
}

// Sums in unsigned arithmetic: they wrap as vector instructions do, should a hostile program make them overflow.
template <typename Byte>
void row_sums(const GemmQ8Rows& t, const uint8_t* row, uint32_t* acc) {
  for (int column = 0; column < t.columns; ++column) acc[column] = static_cast<uint32_t>(t.bias[column]);
  const int8_t* b = t.b;
  const int64_t* offset = t.offsets;
  const int32_t* order = t.orders;
  const int forms = t.forms();
  for (int64_t segment = 0; segment < forms * t.parts; ++segment) {
    const int form = static_cast<int>(segment % forms);
    if (t.taken != nullptr && t.taken[segment / forms] == 0) {
      const int32_t rows = t.segments[segment + 1] - t.segments[segment];
      offset += rows;
      b += int64_t{rows} * t.nr * t.kg;
      if (form == kRowForms) order += rows;
      continue;
    }
    for (int32_t i = t.segments[segment]; i < t.segments[segment + 1]; ++i, ++offset, b += t.nr * t.kg) {
      const uint8_t* bytes = row + *offset;
      const RowForm how = row_form(form, order);
      int32_t a[kGemmQ8MostDepthGroup];
      for (int k = 0; k < t.kg; ++k) a[k] = static_cast<Byte>(form == 0 ? bytes[k] : formed_byte(bytes, how, k));
      for (int column = 0; column < t.columns; ++column) {
        for (int k = 0; k < t.kg; ++k) acc[column] += static_cast<uint32_t>(a[k] * b[column * t.kg + k]);
      }
    }
  }
}

template <typename Byte>
void run(const GemmQ8Rows& t) {
  uint32_t acc[kGemmQ8MostColumns];
  for (int64_t row = 0; row < t.rows; ++row) {
    row_sums<Byte>(t, t.a[row], acc);
    uint8_t* y = t.y[row] + t.channel;
    for (int column = 0; column < t.columns; ++column) {
      const uint8_t residual = t.requantize->add ? t.residual[row][t.channel + column] : 0;
      y[column] =
          requantize_q8(*t.requantize, static_cast<int32_t>(acc[column]), t.scale[column], residual, t.is_signed);
    }
  }
}

}  // namespace

void gemm_u8s8_1xn_scalar(const GemmQ8Rows& t) noexcept { run<uint8_t>(t); }
void gemm_s8s8_1xn_scalar(const GemmQ8Rows& t) noexcept { run<int8_t>(t); }

}  // namespace edgekit::scalar
