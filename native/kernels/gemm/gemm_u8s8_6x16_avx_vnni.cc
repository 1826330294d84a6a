// 6 rows x 16 columns with vpdpbusd, which is exact for u8 and s8: 12 sums, two registers of B and one of A. Of panels
// with up to 8 columns tiles have 8 rows.
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_tiles_avx2.h"
#include "kernels/simd/dot_avx_vnni.h"
#include "kernels/simd/products_avx2.h"

namespace edgekit::avx_vnni {
namespace {

constexpr int64_t kStep = 64;  // bytes of a depth group of B: 16 columns, four deep

template <int kRows, int kVectors>
struct Product {
  // Few sums would wait for one another: then depth groups take turns among several of each.
  static constexpr int kChains = kRows * kVectors <= 3 ? 4 : kRows * kVectors <= 6 ? 2 : 1;
  using Sums = __m256i[kRows][kVectors];  // of columns 8i to 8i + 7

  const uint8_t* a[kRows];
  Sums sums[kChains];

  inline __attribute__((always_inline)) Product(const GemmQ8Rows& t, int64_t first) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      a[r] = t.a[first + r];
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) {
        sums[0][r][i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias + 8 * i));
#pragma GCC unroll 4
        for (int chain = 1; chain < kChains; ++chain) sums[chain][r][i] = _mm256_setzero_si256();
      }
    }
  }

  inline __attribute__((always_inline)) void add(Sums& to, int64_t offset, const int8_t* b) {
    __m256i columns[kVectors];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) columns[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 32 * i));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i four = avx2::broadcast_dword(a[r] + offset);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) dot_add(to[r][i], four, columns[i]);
    }
  }

  // b_of(i): where depth group i lies in B.
  template <typename BOf>
  inline __attribute__((always_inline)) void multiply(const int64_t* offsets, int64_t count, const BOf& b_of) {
    int64_t group = 0;
    if constexpr (kChains > 1) {
      for (const int64_t whole = count / kChains * kChains; group != whole; group += kChains) {
#pragma GCC unroll 4
        for (int chain = 0; chain < kChains; ++chain) add(sums[chain], offsets[group + chain], b_of(group + chain));
      }
    }
    for (; group != count; ++group) add(sums[0], offsets[group], b_of(group));
#pragma GCC unroll 4
    for (int chain = 1; chain < kChains; ++chain) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int i = 0; i < kVectors; ++i) sums[0][r][i] = _mm256_add_epi32(sums[0][r][i], sums[chain][r][i]);
      }
    }
  }

  inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t) {
    if (t.b_offsets != nullptr) {
      multiply(t.offsets, t.depth_groups, [&t](int64_t group) { return t.b + t.b_offsets[group]; });
    } else {
      multiply(t.offsets, t.depth_groups, [b = t.b](int64_t group) { return b + group * kStep; });
    }
  }
};

struct Products {
  template <int kRows, int kVectors>
  static inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t, int64_t first,
                                                             __m256i (&sums)[kRows][kVectors]) {
    Product<kRows, kVectors> product(t, first);
    product.multiply(t);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) sums[r][i] = product.sums[0][r][i];
    }
  }
};

}  // namespace

void gemm_u8s8_6x16_avx_vnni(const GemmQ8Rows& t) noexcept {
  t.columns > 8 ? avx2::sweep_tiles<Products, 6, 2>(t) : avx2::sweep_tiles<Products, 8, 1>(t);
}

}  // namespace edgekit::avx_vnni
