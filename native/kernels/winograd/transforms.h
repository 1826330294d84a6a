// One line of either transform in vectors, for the files of an instruction set. Ops: a type of that file's own, with
// Vector, add, sub and shl of its lanes (16 bits for x, 32 for sums), so that each keeps its own copy of this.
#ifndef EDGEKIT_KERNELS_WINOGRAD_TRANSFORMS_H_
#define EDGEKIT_KERNELS_WINOGRAD_TRANSFORMS_H_

namespace edgekit {

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

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_WINOGRAD_TRANSFORMS_H_
