// 6 rows x 16 columns with vpdpbusd, which is exact for u8 and s8: 12 sums, two registers of B and one of A. Of panels
// with up to 8 columns tiles have 8 rows.
#include <cstring>

#include "kernels/gemm/finish_rows_avx2.h"
#include "kernels/gemm/gemm_q8.h"
#include "kernels/gemm/sweep_rows.h"
#include "kernels/simd/dot_avx_vnni.h"

namespace edgekit::avx_vnni {
namespace {

constexpr int64_t kStep = 64;  // bytes of a depth group of B: 16 columns, four deep

template <int kVectors>
constexpr int kMostRows = kVectors == 1 ? 8 : 6;

inline __m256i broadcast_group(const uint8_t* a) {
  int32_t bits;
  std::memcpy(&bits, a, sizeof(bits));
  return _mm256_set1_epi32(bits);
}

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
      const __m256i four = broadcast_group(a[r] + offset);
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

template <int kVectors, avx2::Finish kFinish>
struct Tile {
  const GemmQ8Rows& t;
  const avx2::FinishConstants constants;

  explicit Tile(const GemmQ8Rows& rows) : t(rows), constants(rows) {}

  // A function of its own: in the midst of others GCC would keep their constants in registers, and sums in memory.
  template <int kRows>
  __attribute__((noinline)) void run(int64_t first) const {
    Product<kRows, kVectors> product(t, first);
    product.multiply(t);
    avx2::finish_rows<kRows, kVectors, kFinish>(t, constants, first, product.sums[0]);
  }
};

template <int kVectors>
void sweep(const GemmQ8Rows& t) {
  using avx2::Finish;
  constexpr int kRows = kMostRows<kVectors>;
  const Finish finish = avx2::finish_of(t);
  if (finish == Finish::kPlain) return sweep_rows<kRows>(Tile<kVectors, Finish::kPlain>(t), t.rows);
  if (finish == Finish::kTable) return sweep_rows<kRows>(Tile<kVectors, Finish::kTable>(t), t.rows);
  sweep_rows<kRows>(Tile<kVectors, Finish::kAny>(t), t.rows);
}

}  // namespace

void gemm_u8s8_6x16_avx_vnni(const GemmQ8Rows& t) noexcept { t.columns > 8 ? sweep<2>(t) : sweep<1>(t); }

}  // namespace edgekit::avx_vnni
