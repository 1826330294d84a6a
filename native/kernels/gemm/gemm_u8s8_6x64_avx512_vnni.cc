// 6 rows x 64 columns with vpdpbusd, which is exact for u8 and s8: 24 sums, 4 of B and 1 of A in the 32 registers. Rows
// of A are read as they stand in memory, four bytes of depth at a time.
#include <cstring>

#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_rows.h"
#include "kernels/requantize/requantize_avx512_vnni.h"

namespace edgekit::avx512_vnni {
namespace {

template <int kRows>
inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first, __m512i (&sums)[kRows][4]) {
  const uint8_t* a[kRows];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    a[r] = t.a[first + r];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[r][i] = _mm512_loadu_si512(t.bias + 16 * i);
  }
  const int8_t* b = t.b;
  const int64_t* end = t.offsets + t.depth_groups;
  for (const int64_t* offset = t.offsets; offset != end; ++offset, b += 256) {
    __m512i columns[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) columns[i] = _mm512_loadu_si512(b + 64 * i);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int32_t bits;
      std::memcpy(&bits, a[r] + *offset, sizeof(bits));
      const __m512i four = _mm512_set1_epi32(bits);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) dot_add(sums[r][i], four, columns[i]);
    }
  }
}

struct Tile {
  const GemmQ8Rows& t;

  template <int kRows>
  void run(int64_t first) const {
    __m512i sums[kRows][4];
    multiply<kRows>(t, first, sums);
    const RequantizeQ8& p = *t.requantize;
    const __mmask64 part = part_of_64(0, t.columns);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m512i v[4] = {round_scaled(sums[r][0], t.scale, p), round_scaled(sums[r][1], t.scale + 16, p),
                            round_scaled(sums[r][2], t.scale + 32, p), round_scaled(sums[r][3], t.scale + 48, p)};
      finish_64(order_lanes(pack_lanes(v, p)), t.y[first + r] + t.channel,
                p.add ? t.residual[first + r] + t.channel : nullptr, part, p);
    }
  }
};

}  // namespace

void gemm_u8s8_6x64_avx512_vnni(const GemmQ8Rows& t) noexcept { sweep_rows<6>(Tile{t}, t.rows); }

}  // namespace edgekit::avx512_vnni
