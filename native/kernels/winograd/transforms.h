// The transforms in vectors, for the files of an instruction set. Ops: a type of that file's own, so that each keeps
// its own copy of this, with Vector and add, sub and shl of its lanes: 16 bits for x and weights, 32 for sums. Those of
// 16 bits have kCount lanes, load_bytes, load_taps (bytes of x and of weights, widened) and store besides.
#ifndef EDGEKIT_KERNELS_WINOGRAD_TRANSFORMS_H_
#define EDGEKIT_KERNELS_WINOGRAD_TRANSFORMS_H_

#include "kernels/winograd/winograd_q8.h"

namespace edgekit {

// Row kRow of G times a column of g.
template <typename Ops, int kRow>
inline __attribute__((always_inline)) typename Ops::Vector combine_taps(typename Ops::Vector g0,
                                                                        typename Ops::Vector g1,
                                                                        typename Ops::Vector g2) {
  if constexpr (kRow == 0) return Ops::add(Ops::shl(g0, 2), Ops::shl(g0, 1));
  if constexpr (kRow == 1) return Ops::add(Ops::add(g0, g2), g1);
  if constexpr (kRow == 2) return Ops::sub(Ops::add(g0, g2), g1);
  if constexpr (kRow == 3) return Ops::add(Ops::add(g0, Ops::shl(g2, 2)), Ops::shl(g1, 1));
  if constexpr (kRow == 4) return Ops::sub(Ops::add(g0, Ops::shl(g2, 2)), Ops::shl(g1, 1));
  return Ops::add(Ops::shl(g2, 2), Ops::shl(g2, 1));
}

// Row kRow of G g G', of as many values as a vector holds: tap(3 * row + column) gives those of g.
template <typename Ops, int kRow, typename Tap>
inline __attribute__((always_inline)) void expand_row(Tap&& tap, typename Ops::Vector (&u)[6]) {
  typename Ops::Vector g[3];
#pragma GCC unroll 3
  for (int c = 0; c < 3; ++c) g[c] = combine_taps<Ops, kRow>(tap(c), tap(3 + c), tap(6 + c));
  u[0] = combine_taps<Ops, 0>(g[0], g[1], g[2]);
  u[1] = combine_taps<Ops, 1>(g[0], g[1], g[2]);
  u[2] = combine_taps<Ops, 2>(g[0], g[1], g[2]);
  u[3] = combine_taps<Ops, 3>(g[0], g[1], g[2]);
  u[4] = combine_taps<Ops, 4>(g[0], g[1], g[2]);
  u[5] = combine_taps<Ops, 5>(g[0], g[1], g[2]);
}

// v = B d.
template <typename Ops>
inline __attribute__((always_inline)) void transform_line(const typename Ops::Vector (&d)[6],
                                                          typename Ops::Vector (&v)[6]) {
  const auto even = Ops::sub(d[4], d[2]);
  const auto odd = Ops::shl(Ops::sub(d[3], d[1]), 1);
  const auto far_even = Ops::sub(d[4], Ops::shl(d[2], 2));
  const auto far_odd = Ops::sub(d[3], Ops::shl(d[1], 2));
  v[0] = Ops::add(Ops::shl(Ops::sub(d[0], d[2]), 2), even);
  v[1] = Ops::add(far_even, far_odd);
  v[2] = Ops::sub(far_even, far_odd);
  v[3] = Ops::add(even, odd);
  v[4] = Ops::sub(even, odd);
  v[5] = Ops::sub(Ops::sub(d[5], d[3]), Ops::shl(odd, 1));
}

// sums = A m.
template <typename Ops>
inline __attribute__((always_inline)) void finish_line(const typename Ops::Vector (&m)[6],
                                                       typename Ops::Vector (&sums)[4]) {
  const auto near = Ops::add(m[1], m[2]), near_odd = Ops::sub(m[2], m[1]);
  const auto far = Ops::add(m[3], m[4]), far_odd = Ops::sub(m[3], m[4]);
  sums[0] = Ops::add(m[0], Ops::sub(far, Ops::shl(near, 2)));
  sums[1] = Ops::add(far_odd, Ops::add(near_odd, near_odd));
  sums[2] = Ops::sub(far, near);
  sums[3] = Ops::add(Ops::add(m[5], near_odd), Ops::add(far_odd, far_odd));
}

// Row kRow of u of one panel. See WinogradQ8Kernels::expand.
template <typename Ops, int kRow>
void expand_rows(const WinogradQ8Weights& weights) {
  constexpr int kWords = Ops::kCount / 2;
  constexpr int kTapBytes = 2 * kWinogradColumns;
  for (int64_t word = 0; word < weights.pairs * kWinogradColumns; word += kWords) {
    const int8_t* w = weights.w + word / kWinogradColumns * 9 * kTapBytes + word % kWinogradColumns * 2;
    typename Ops::Vector u[6];
    expand_row<Ops, kRow>([w](int tap) { return Ops::load_taps(w + tap * kTapBytes); }, u);
#pragma GCC unroll 6
    for (int c = 0; c < kWinogradIn; ++c) Ops::store(weights.u + c * weights.column_step + word, u[c]);
  }
}

template <typename Ops>
inline void expand_weights(const WinogradQ8Weights& weights) {
  constexpr void (*kRows[kWinogradIn])(const WinogradQ8Weights&) = {expand_rows<Ops, 0>, expand_rows<Ops, 1>,
                                                                    expand_rows<Ops, 2>, expand_rows<Ops, 3>,
                                                                    expand_rows<Ops, 4>, expand_rows<Ops, 5>};
  kRows[weights.row](weights);
}

// v of the channels from `first` on, as many as Ops has lanes. See WinogradQ8Kernels::transform.
template <typename Ops>
inline __attribute__((always_inline)) void transform_channels(const WinogradQ8Patch& patch, int64_t first) {
  typename Ops::Vector half[kWinogradIn][kWinogradIn];
#pragma GCC unroll 1
  for (int c = 0; c < kWinogradIn; ++c) {
    typename Ops::Vector d[kWinogradIn], v[kWinogradIn];
    const uint8_t* x = patch.x + c * patch.column_step + first;
#pragma GCC unroll 6
    for (int r = 0; r < kWinogradIn; ++r) d[r] = Ops::load_bytes(x + r * patch.row_step);
    transform_line<Ops>(d, v);
#pragma GCC unroll 6
    for (int r = 0; r < kWinogradIn; ++r) half[r][c] = v[r];
  }
  int16_t* out = patch.v + first;
#pragma GCC unroll 1
  for (int r = 0; r < kWinogradIn; ++r) {
    typename Ops::Vector v[kWinogradIn];
    transform_line<Ops>(half[r], v);
#pragma GCC unroll 6
    for (int c = 0; c < kWinogradIn; ++c, out += patch.position_step) Ops::store(out, v[c]);
  }
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_WINOGRAD_TRANSFORMS_H_
