// Products with vpdpbusd, which is exact for u8 and s8. A panel of up to 64 columns takes 1 to 4 registers a row, and
// the fewer there are the more rows a tile has, so that narrow layers keep the multipliers as busy as wide ones. Rows
// of A are read as they stand in memory, four bytes of depth at a time.
#include <cstring>

#include "kernels/gemm/finish_rows_avx512_vnni.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_rows.h"

namespace edgekit::avx512_vnni {
namespace {

constexpr int64_t kStep = 256;  // bytes of a depth group of B: 64 columns, four deep

// Sums of a tile, columns of B and one broadcast of A fit 32 registers.
template <int kVectors>
constexpr int kMostRows = kVectors == 1   ? 16
                          : kVectors == 2 ? 14
                          : kVectors == 3 ? 8
                                          : 6;

inline __m512i broadcast_group(const uint8_t* a) {
  int32_t bits;
  std::memcpy(&bits, a, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

template <int kRows, int kVectors>
struct Product {
  const GemmQ8Rows& t;
  const uint8_t* const* a;
  __m512i sums[kRows][kVectors];

  inline __attribute__((always_inline)) Product(const GemmQ8Rows& rows, int64_t first) : t(rows), a(rows.a + first) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sums[r][i] = _mm512_loadu_si512(t.bias + 16 * i);
    }
  }

  // kGroups depth groups, one behind the other in every row. A pointer is loaded once for all of them.
  template <int kGroups>
  inline __attribute__((always_inline)) void add(int64_t offset, const int8_t* b) {
    __m512i columns[kGroups][kVectors];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) columns[g][i] = _mm512_loadu_si512(b + g * kStep + 64 * i);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* at = a[r] + offset;
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        const __m512i four = broadcast_group(at + 4 * g);
#pragma GCC unroll 4
        for (int i = 0; i < kVectors; ++i) dot_add(sums[r][i], four, columns[g][i]);
      }
    }
  }

  inline __attribute__((always_inline)) void multiply() {
    int64_t group = 0;
    if (t.b_offsets != nullptr) {
      for (; group < t.depth_groups; ++group) add<1>(t.offsets[group], t.b + t.b_offsets[group]);
      return;
    }
    const int8_t* b = t.b;
    if constexpr (kVectors == 1) {
      for (; group < 4 * t.quads; group += 4, b += 4 * kStep) add<4>(t.offsets[group], b);
    }
    for (; group < t.depth_groups; ++group, b += kStep) add<1>(t.offsets[group], b);
  }
};

template <int kVectors>
struct Tile {
  const GemmQ8Rows& t;

  template <int kRows>
  void run(int64_t first) const {
    Product<kRows, kVectors> product(t, first);
    product.multiply();
    finish_rows<kRows, kVectors>(t, first, product.sums);
  }
};

template <int kVectors>
void sweep(const GemmQ8Rows& t) {
  sweep_rows<kMostRows<kVectors>>(Tile<kVectors>{t}, t.rows);
}

}  // namespace

void gemm_u8s8_64_avx512_vnni(const GemmQ8Rows& t) noexcept {
  switch ((t.columns + 15) / 16) {
    case 1:
      return sweep<1>(t);
    case 2:
      return sweep<2>(t);
    case 3:
      return sweep<3>(t);
    default:
      return sweep<4>(t);
  }
}

}  // namespace edgekit::avx512_vnni
