// Tiles of up to 16 columns over rows, from products to y. Only for *_avx2.cc and *_avx_vnni.cc files, each with its
// own.
#ifndef EDGEKIT_KERNELS_GEMM_SWEEP_TILES_AVX2_H_
#define EDGEKIT_KERNELS_GEMM_SWEEP_TILES_AVX2_H_

#include "kernels/gemm/finish_rows_avx2.h"
#include "kernels/gemm/sweep_rows.h"

namespace edgekit::avx2 {
namespace {

template <typename Products, int kVectors, Finish kFinish>
struct FinishedTile {
  const GemmQ8Rows& t;
  const FinishConstants constants;

  explicit FinishedTile(const GemmQ8Rows& rows) : t(rows), constants(rows, kFinish) {}

  // A function of its own: in the midst of others GCC would keep their constants in registers, and sums in memory.
  template <int kRows>
  __attribute__((noinline)) void run(int64_t first) const {
    __m256i sums[kRows][kVectors];
    Products::multiply(t, first, sums);
    finish_rows<kRows, kVectors, kFinish>(t, constants, first, sums);
  }
};

// Products::multiply(t, first, sums): the sums of rows first to first + kRows - 1, [kRows][kVectors] vectors.
template <typename Products, int kMostRows, int kVectors>
void sweep_tiles(const GemmQ8Rows& t) {
  switch (finish_of(t)) {
    case Finish::kPlain:
      return sweep_rows<kMostRows>(FinishedTile<Products, kVectors, Finish::kPlain>(t), t.rows);
    case Finish::kTable:
      return sweep_rows<kMostRows>(FinishedTile<Products, kVectors, Finish::kTable>(t), t.rows);
    case Finish::kAdd:
      return sweep_rows<kMostRows>(FinishedTile<Products, kVectors, Finish::kAdd>(t), t.rows);
    case Finish::kAny:
      return sweep_rows<kMostRows>(FinishedTile<Products, kVectors, Finish::kAny>(t), t.rows);
  }
}

}  // namespace
}  // namespace edgekit::avx2

#endif  // EDGEKIT_KERNELS_GEMM_SWEEP_TILES_AVX2_H_
