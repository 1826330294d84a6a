// How a family's kernels.inc becomes its dispatch table. Each line EK_KERNELS(kIsa, space) names an instruction set and
// the namespace edgekit::<space> that defines the family's `kernels()` for it, the preferred ones last.
#ifndef EDGEKIT_KERNELS_VARIANT_H_
#define EDGEKIT_KERNELS_VARIANT_H_

#include <cstddef>

#include "core/cpu_features.h"

namespace edgekit {

// One row of a dispatch table.
template <typename Table>
struct Variant {
  Isa isa;
  const char* name;
  const Table& (*kernels)();
};

// The best row for `isa`: the last that every CPU with it runs. Row 0 is always scalar.
template <typename Table, size_t count>
const Variant<Table>& best_variant(const Variant<Table> (&rows)[count], Isa isa) {
  const Variant<Table>* best = &rows[0];
  for (const Variant<Table>& row : rows) {
    if (isa_includes(isa, row.isa)) best = &row;
  }
  return *best;
}

template <typename Table, size_t count>
const Table& select_variant(const Variant<Table> (&rows)[count], Isa isa) {
  return best_variant(rows, isa).kernels();
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_VARIANT_H_
