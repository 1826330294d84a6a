// The kernels of conv_q8_winograd: 3x3 convolutions with stride 1 by minimal filtering F(4x4, 3x3) (Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks", 2016), in whole numbers throughout, so that its sums are those
// of conv_q8 bit for bit. A tile is 4x4 pixels of y and the 6x6 pixels of x under them. With d the bytes of a tile in
// one channel and g its weights,
//   u = G g G',  v = B d B',  m = sum over channels of u * v,  sums = (A m A') / (9 * 2^(s_i + s_j)),  s = 3 2 1 1
//       6  0  0        4  0 -5  0  1  0        1  -4  -4   1   1   0
//       1  1  1        0 -4 -4  1  1  0        0  -2   2   1  -1   0
//   G = 1 -1  1    B = 0  4 -4 -1  1  0    A = 0  -1  -1   1   1   0
//       1  2  4        0 -2 -1  2  1  0        0  -1   1   2  -2   1
//       1 -2  4        0  2 -1 -2  1  0
//       0  0  6        0  4  0 -5  0  1
// u and v take 16 bits (at most 49 * 128 and 68 * 255), m wraps in 32. Both divisions leave no remainder: the one by 9
// is a multiplication by its inverse modulo 2^32, the one by a power of two a shift, right while a sum stays below
// 2^25.
#ifndef EDGEKIT_KERNELS_WINOGRAD_WINOGRAD_Q8_H_
#define EDGEKIT_KERNELS_WINOGRAD_WINOGRAD_Q8_H_

#include <cstdint>

#include "kernels/gemm/gemm_q8.h"

namespace edgekit {

inline constexpr int kWinogradOut = 4;  // pixels of y along a tile's side
inline constexpr int kWinogradIn = 6;   // pixels of x
inline constexpr int kWinogradPixels = kWinogradOut * kWinogradOut;
inline constexpr int kWinogradPositions = kWinogradIn * kWinogradIn;
inline constexpr int kWinogradColumns = 16;   // of a panel of weights
inline constexpr int kWinogradChannels = 16;  // v is made of that many at a time
inline constexpr uint32_t kInverseOfNine = 0x38E38E39;
inline constexpr int kWinogradShifts[kWinogradOut] = {3, 2, 1, 1};

// One tile of x. Nothing needs an alignment.
struct WinogradQ8Patch {
  const uint8_t* x;  // its first pixel
  int64_t row_step, column_step;
  int64_t channels;  // a multiple of kWinogradChannels: so many bytes of each of the 36 pixels are read
  int16_t* v;        // position p = 6 * row + column begins at v + p * position_step
  int64_t position_step;
};

// Weights of one panel to one of the six rows of their u: so little of it at a time that it stays in level 1.
struct WinogradQ8Weights {
  const int8_t* w;  // [pairs][9][kWinogradColumns][2]
  int64_t pairs;
  int row;  // 0 to kWinogradIn - 1
  // Column c begins at u + c * column_step: [pairs][kWinogradColumns], two values of 16 bits each.
  int32_t* u;
  int64_t column_step;
};

// Tiles times neighbouring panels of weights, in the six positions of a row. Reads 2 * pairs channels of v.
struct WinogradQ8Product {
  const int16_t* v;  // tile t of column c begins at v + c * position_step + t * tile_step
  int64_t position_step, tile_step;
  const int32_t* u;  // column c of a panel begins at u + c * u_column_step + panel * u_panel_step
  int64_t u_column_step, u_panel_step;
  int64_t pairs;
  int32_t* m;          // column c of tile t of a panel: m + (kWinogradPositions * t + c) * kWinogradColumns
  int64_t panel_step;  // elements of m from panel to panel
  int64_t tiles;
  int panels;       // 1 to the kernels' most_panels
  bool accumulate;  // adds to m instead of writing it
};

// finish: m of rows.rows / kWinogradPixels tiles to rows of y, kWinogradPixels each, row by row; m of a tile is
// [kWinogradPositions][kWinogradColumns]. Of `rows` it reads
// what comes after the sums: bias (kWinogradColumns of it), scale, y, residual, channel, columns, requantize.
struct WinogradQ8Kernels {
  const char* name;
  int most_panels;  // of one multiplication
  void (*expand)(const WinogradQ8Weights& weights) noexcept;
  void (*transform)(const WinogradQ8Patch& patch) noexcept;
  void (*multiply)(const WinogradQ8Product& product) noexcept;
  void (*finish)(const int32_t* m, const GemmQ8Rows& rows) noexcept;
};

// The best kernels for `isa`.
const WinogradQ8Kernels& select_winograd_q8(Isa isa);

#define EK_KERNELS(isa, space)                    \
  namespace space {                               \
  const WinogradQ8Kernels& winograd_q8_kernels(); \
  }
#include "kernels/winograd/kernels.inc"
#undef EK_KERNELS

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_WINOGRAD_WINOGRAD_Q8_H_
