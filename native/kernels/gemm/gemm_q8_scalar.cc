// The reference that every other kernel equals bit for bit. Takes any panel width and depth group, u8 and s8.
#include "kernels/gemm/gemm_q8.h"

namespace edgekit::scalar {
namespace {

// Sums in unsigned arithmetic: they wrap as vector instructions do, should a hostile program make them overflow.
template <typename Byte>
void row_sums(const GemmQ8Rows& t, const uint8_t* row, uint32_t* acc) {
  for (int column = 0; column < t.columns; ++column) acc[column] = static_cast<uint32_t>(t.bias[column]);
  const int8_t* b = t.b;
  for (int64_t group = 0; group < t.depth_groups; ++group, b += t.nr * t.kg) {
    const uint8_t* bytes = row + t.offsets[group];
    int32_t a[kGemmQ8MostDepthGroup];
    for (int k = 0; k < t.kg; ++k) a[k] = static_cast<Byte>(bytes[k]);
    for (int column = 0; column < t.columns; ++column) {
      for (int k = 0; k < t.kg; ++k) acc[column] += static_cast<uint32_t>(a[k] * b[column * t.kg + k]);
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
