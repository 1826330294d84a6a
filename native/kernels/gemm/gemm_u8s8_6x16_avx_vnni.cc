// 6 rows x 16 columns with vpdpbusd, which is exact for u8 and s8: 12 sums, two registers of B and one of A. Of panels
// with up to 8 columns tiles have 8 rows, since few sums would leave the multipliers waiting for one another.
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
  const uint8_t* a[kRows];
  __m256i sums[kRows][kVectors];  // of columns 8i to 8i + 7

  inline __attribute__((always_inline)) Product(const GemmQ8Rows& t, int64_t first) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      a[r] = t.a[first + r];
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) {
        sums[r][i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(t.bias + 8 * i));
      }
    }
  }

  inline __attribute__((always_inline)) void add(int64_t offset, const int8_t* b) {
    __m256i columns[kVectors];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) columns[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 32 * i));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i four = broadcast_group(a[r] + offset);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i) dot_add(sums[r][i], four, columns[i]);
    }
  }

  inline __attribute__((always_inline)) void multiply(const GemmQ8Rows& t) {
    const int64_t* const end = t.offsets + t.depth_groups;
    if (t.b_offsets != nullptr) {
      const int64_t* b_offset = t.b_offsets;
      for (const int64_t* offset = t.offsets; offset != end; ++offset, ++b_offset) add(*offset, t.b + *b_offset);
      return;
    }
    const int8_t* b = t.b;
    for (const int64_t* offset = t.offsets; offset != end; ++offset, b += kStep) add(*offset, b);
  }
};

template <int kVectors, avx2::Finish kFinish>
struct Tile {
  const GemmQ8Rows& t;
  const avx2::FinishConstants constants;

  explicit Tile(const GemmQ8Rows& rows) : t(rows), constants(rows) {}

  template <int kRows>
  void run(int64_t first) const {
    Product<kRows, kVectors> product(t, first);
    product.multiply(t);
    avx2::finish_rows<kRows, kVectors, kFinish>(t, constants, first, product.sums);
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
