// The reference that every other kernel equals bit for bit. Takes any panel width and depth group, u8 and s8.
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/pack_rows.h"

namespace edgekit::scalar {
namespace {

template <typename Byte>
struct WidenCopy {
  using Element = int16_t;
  static void run(int16_t* out, const uint8_t* in, int64_t count, const uint8_t*) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<Byte>(in[i]);
  }
  static void fill(int16_t* out, int32_t value, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int16_t>(value);
  }
};

// Sums in unsigned arithmetic: they wrap as vector instructions do, should a hostile program make them overflow.
void row_sums(const GemmQ8Tile& t, const int16_t* a, uint32_t* acc) {
  for (int column = 0; column < t.columns; ++column) acc[column] = static_cast<uint32_t>(t.bias[column]);
  const int8_t* b = t.b;
  for (int64_t group = 0; group < t.depth_groups; ++group, b += t.nr * t.kg, a += t.kg) {
    for (int column = 0; column < t.columns; ++column) {
      for (int k = 0; k < t.kg; ++k) acc[column] += static_cast<uint32_t>(a[k] * b[column * t.kg + k]);
    }
  }
}

void tile(const GemmQ8Tile& t) {
  uint32_t acc[kGemmQ8MostColumns];
  for (int row = 0; row < t.rows; ++row) {
    row_sums(t, static_cast<const int16_t*>(t.a[row]), acc);
    uint8_t* y = t.y[row] + t.channel;
    for (int column = 0; column < t.columns; ++column) {
      const uint8_t residual = t.requantize->add ? t.residual[row][t.channel + column] : 0;
      y[column] =
          requantize_q8(*t.requantize, static_cast<int32_t>(acc[column]), t.scale[column], residual, t.is_signed);
    }
  }
}

}  // namespace

void gemm_u8s8_4xn_scalar(const GemmQ8Tile& t) noexcept { tile(t); }
void gemm_s8s8_4xn_scalar(const GemmQ8Tile& t) noexcept { tile(t); }

void pack_rows_gemm_u8s8_4xn_scalar(const ConvQ8Source& source, int64_t group, int64_t first, int64_t count,
                                    void* out) noexcept {
  pack_rows<WidenCopy<uint8_t>>(source, group, first, count, out);
}

void pack_rows_gemm_s8s8_4xn_scalar(const ConvQ8Source& source, int64_t group, int64_t first, int64_t count,
                                    void* out) noexcept {
  pack_rows<WidenCopy<int8_t>>(source, group, first, count, out);
}

}  // namespace edgekit::scalar
