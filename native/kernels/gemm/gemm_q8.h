// The micro-kernels of INT8 products: rows of A times one panel of B, requantized into rows of y. One manifest
// (kernels.inc) names them all; declarations, dispatch, tests and benchmarks include it.
#ifndef EDGEKIT_KERNELS_GEMM_GEMM_Q8_H_
#define EDGEKIT_KERNELS_GEMM_GEMM_Q8_H_

#include <cstddef>
#include <cstdint>

#include "kernels/requantize/requantize_q8.h"

namespace edgekit {

inline constexpr int kGemmQ8MostColumns = 256;  // the widest panel a program may have
inline constexpr int kGemmQ8MostDepthGroup = 16;

// A form of the bytes of a depth group: their order and which are complemented (see row_start in the schema). As
// dwords: what a byte shuffle takes, and what an exclusive or.
struct RowForm {
  uint32_t order, complement;
};

inline constexpr int kPickedGroups = 4;

// By number. Beyond these, with a list of orders, there is one form more, whose rows have each their own: four of the
// sixteen bytes of four depth groups.
inline constexpr int kRowForms = 6;
inline constexpr int kFirstComplement = 3;  // forms from here on keep the order
inline constexpr RowForm kRowForm[kRowForms] = {{0x03020100, 0},          {0x03010200, 0},
                                                {0x02010300, 0},          {0x03020100, 0x0000ff00},
                                                {0x03020100, 0xff000000}, {0x03020100, 0xff00ff00}};

inline int forms_of(const int32_t* orders) { return orders == nullptr ? kRowForms : kRowForms + 1; }

// Of the next row in form `number`; takes its order from the list.
inline RowForm row_form(int number, const int32_t*& orders) {
  return number == kRowForms ? RowForm{static_cast<uint32_t>(*orders++), 0} : kRowForm[number];
}

// Rows x columns of y. Depth group g of row r is the kg bytes at a[r] + offsets[g]: the same offsets serve every row,
// so that rows are windows of an image where they stand, or packed copies. b holds depth_groups * nr * kg values; bias
// and scale hold nr values, also where columns < nr; y and residual rows hold channel + columns bytes. Nothing needs an
// alignment. y may equal residual; nothing else may overlap y.
struct GemmQ8Rows {
  const uint8_t* const* a;  // [rows]
  const int64_t* offsets;   // [depth_groups]
  // Where depth groups lie in b, in bytes. Null: one behind the other.
  const int64_t* b_offsets;  // [depth_groups]
  int64_t depth_groups;
  // They come in `parts` parts, and in each form by form: segment s, of form s % forms(), has segments[s + 1] -
  // segments[s] of them. Weights that are no list are all of form 0: one part, or with `taken` one for each tap.
  const int32_t* segments;  // [forms() * parts + 1]
  int64_t parts;
  const uint8_t* taken;   // [parts] 0: the part is left out; null: none is
  const int32_t* orders;  // of each row of the last form: what a byte shuffle takes; null: kRowForms are all
  int64_t quads;          // the first 4 * quads groups lie, four by four, one behind the other: 4 * kg bytes at a time
  const int8_t* b;
  int64_t rows;  // 1 or more; a kernel takes them mr at a time
  int columns;   // 1 to nr
  const int32_t* bias;
  const float* scale;
  uint8_t* const* y;               // [rows] channel 0 of each output pixel
  const uint8_t* const* residual;  // [rows] likewise; read only if requantize->add
  int64_t channel;                 // of this panel's first column: where in those rows it goes
  const RequantizeQ8* requantize;
  int nr, kg;      // for the scalar kernels, which take any
  bool is_signed;  // s8 activations; for the scalar kernels, which take both

  int forms() const { return forms_of(orders); }
};

using GemmQ8Fn = void (*)(const GemmQ8Rows&) noexcept;

// How a kernel leaves depth groups out: not at all, by b_offsets, or by `taken`. Those of the last kind are the ones
// that read segments.
enum class DepthSkips { kNothing, kGroups, kParts };

struct GemmQ8Kernel {
  const char* name;
  Isa isa;
  Dtype activations;  // what x and y are
  int mr, nr, kg;     // nr, kg: 0 for any
  DepthSkips skips;
  double mac_ns;  // rough cost of one multiply-accumulate, to decide on threads
  GemmQ8Fn run;
};

// Every kernel of this build, whether or not this CPU can run it; scalar ones first.
struct GemmQ8Kernels {
  const GemmQ8Kernel* begin_;
  const GemmQ8Kernel* end_;
  const GemmQ8Kernel* begin() const { return begin_; }
  const GemmQ8Kernel* end() const { return end_; }
};
GemmQ8Kernels gemm_q8_kernels();

// The kernel for weights packed as (nr, kg): of `isa` if it has one for them, else scalar.
const GemmQ8Kernel& select_gemm_q8(Isa isa, Dtype activations, int nr, int kg);

// Kernels that can stand in for that one: of its instruction set, with its packing. It is the first of them.
int gemm_q8_peer_count(const GemmQ8Kernel& kernel);
const GemmQ8Kernel& gemm_q8_peer(const GemmQ8Kernel& kernel, int index);

#define EK_GEMM_Q8(name, space, isa, activations, mr, nr, kg, skips, mac_ns) \
  namespace space {                                                          \
  void name(const GemmQ8Rows& rows) noexcept;                                \
  }
#include "kernels/gemm/kernels.inc"
#undef EK_GEMM_Q8

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_GEMM_Q8_H_
