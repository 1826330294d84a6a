// The reference that every other kernel equals bit for bit. Sums wrap, as vector instructions do.
#include "kernels/winograd/winograd_q8.h"

namespace edgekit::scalar {
namespace {

constexpr int32_t kInput[kWinogradIn][kWinogradIn] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                                      {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
constexpr int32_t kOutput[kWinogradOut][kWinogradIn] = {
    {1, -4, -4, 1, 1, 0}, {0, -2, 2, 1, -1, 0}, {0, -1, -1, 1, 1, 0}, {0, -1, 1, 2, -2, 1}};

// rows * square * rows', both sides' products in 32 bits that wrap.
template <int kOut>
void apply(const int32_t (&rows)[kOut][kWinogradIn], const uint32_t (&square)[kWinogradIn][kWinogradIn],
           uint32_t (&out)[kOut][kOut]) {
  uint32_t half[kOut][kWinogradIn] = {};
  for (int i = 0; i < kOut; ++i) {
    for (int c = 0; c < kWinogradIn; ++c) {
      for (int r = 0; r < kWinogradIn; ++r) half[i][c] += static_cast<uint32_t>(rows[i][r]) * square[r][c];
    }
  }
  for (int i = 0; i < kOut; ++i) {
    for (int j = 0; j < kOut; ++j) {
      out[i][j] = 0;
      for (int c = 0; c < kWinogradIn; ++c) out[i][j] += half[i][c] * static_cast<uint32_t>(rows[j][c]);
    }
  }
}

constexpr int32_t kWeights[kWinogradIn][3] = {{6, 0, 0}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 6}};

// One value of u of the channel whose taps lie at w, two columns of bytes apart.
int32_t expanded(const int8_t* w, int row, int column) {
  int32_t sum = 0;
  for (int tap = 0; tap < 9; ++tap) {
    sum += kWeights[row][tap / 3] * kWeights[column][tap % 3] * w[tap * 2 * kWinogradColumns];
  }
  return sum;
}

void expand(const WinogradQ8Weights& weights) noexcept {
  for (int column = 0; column < kWinogradIn; ++column) {
    for (int64_t word = 0; word < weights.pairs * kWinogradColumns; ++word) {
      const int8_t* w = weights.w + word / kWinogradColumns * 18 * kWinogradColumns + word % kWinogradColumns * 2;
      const auto low = static_cast<uint16_t>(expanded(w, weights.row, column));
      const auto high = static_cast<uint32_t>(expanded(w + 1, weights.row, column)) << 16;
      weights.u[column * weights.column_step + word] = static_cast<int32_t>(low | high);
    }
  }
}

void transform(const WinogradQ8Patch& patch) noexcept {
  uint32_t d[kWinogradIn][kWinogradIn], v[kWinogradIn][kWinogradIn];
  for (int64_t channel = 0; channel < patch.channels; ++channel) {
    for (int p = 0; p < kWinogradPositions; ++p) {
      const int r = p / kWinogradIn, c = p % kWinogradIn;
      d[r][c] = patch.x[r * patch.row_step + c * patch.column_step + channel];
    }
    apply(kInput, d, v);
    for (int p = 0; p < kWinogradPositions; ++p) {
      patch.v[p * patch.position_step + channel] = static_cast<int16_t>(v[p / kWinogradIn][p % kWinogradIn]);
    }
  }
}

uint32_t low_half(int32_t pair) { return static_cast<uint32_t>(static_cast<int16_t>(pair)); }
uint32_t high_half(int32_t pair) { return static_cast<uint32_t>(pair >> 16); }

void multiply(const WinogradQ8Product& t) noexcept {
  for (int64_t tile = 0; tile < t.tiles; ++tile) {
    for (int c = 0; c < kWinogradIn; ++c) {
      const int16_t* v = t.v + c * t.position_step + tile * t.tile_step;
      int32_t* m = t.m + (tile * kWinogradPositions + c) * kWinogradColumns;
      for (int column = 0; column < kWinogradColumns; ++column) {
        const int32_t* u = t.u + c * t.u_column_step + column;
        uint32_t sum = t.accumulate ? static_cast<uint32_t>(m[column]) : 0;
        for (int64_t k = 0; k < t.pairs; ++k) {
          const int32_t pair = u[k * kWinogradColumns];
          sum +=
              static_cast<uint32_t>(v[2 * k]) * low_half(pair) + static_cast<uint32_t>(v[2 * k + 1]) * high_half(pair);
        }
        m[column] = static_cast<int32_t>(sum);
      }
    }
  }
}

void finish_tile(const int32_t* m, const GemmQ8Rows& t, int64_t first) {
  for (int column = 0; column < t.columns; ++column) {
    uint32_t square[kWinogradIn][kWinogradIn], sums[kWinogradOut][kWinogradOut];
    for (int p = 0; p < kWinogradPositions; ++p) {
      square[p / kWinogradIn][p % kWinogradIn] = static_cast<uint32_t>(m[p * kWinogradColumns + column]);
    }
    apply(kOutput, square, sums);
    for (int pixel = 0; pixel < kWinogradPixels; ++pixel) {
      const int i = pixel / kWinogradOut, j = pixel % kWinogradOut;
      const auto scaled = static_cast<int32_t>(sums[i][j] * kInverseOfNine);
      const auto sum = static_cast<uint32_t>(scaled >> (kWinogradShifts[i] + kWinogradShifts[j]));
      const auto acc = static_cast<int32_t>(sum + static_cast<uint32_t>(t.bias[column]));
      const int64_t row = first + pixel;
      const uint8_t residual = t.requantize->add ? t.residual[row][t.channel + column] : 0;
      t.y[row][t.channel + column] = requantize_q8(*t.requantize, acc, t.scale[column], residual, false);
    }
  }
}

void finish(const int32_t* m, const GemmQ8Rows& t) noexcept {
  for (int64_t row = 0; row < t.rows; row += kWinogradPixels) {
    finish_tile(m, t, row);
    m += kWinogradPositions * kWinogradColumns;
  }
}

}  // namespace

const WinogradQ8Kernels& winograd_q8_kernels() {
  static constexpr WinogradQ8Kernels kKernels{"winograd_u8s8_4x4_scalar", 1, expand, transform, multiply, finish};
  return kKernels;
}

}  // namespace edgekit::scalar
