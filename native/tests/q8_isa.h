// The instruction sets a kernel test runs: all of this build that this CPU has, each with its packing. Scalar kernels
// run with every packing and both kinds of activations.
#ifndef EDGEKIT_TESTS_Q8_ISA_H_
#define EDGEKIT_TESTS_Q8_ISA_H_

#include <vector>

#include "core/cpu_features.h"
#include "program_schema.h"

namespace edgekit::test {

struct Packing {
  Isa isa;
  int nr, kg;
  bool is_signed, saturating_pairs;
};

inline bool can_run(Isa isa) {
#if defined(EDGEKIT_SIMDE)
  // This build has portable code in their place.
  if (isa == Isa::kX86AvxVnni || isa == Isa::kX86Avx512Vnni) return true;
#endif
  return check_isa_supported(isa).is_ok();
}

inline std::vector<Packing> runnable_packings() {
  std::vector<Packing> all;
  for (const IsaPacking& row : kIsaPacking) {
    if (row.isa == Isa::kScalar) continue;
    Packing packing{Isa::kScalar, row.q8_nr, row.q8_kg, row.activations_signed, row.saturating_pairs};
    all.push_back(packing);
    packing.isa = row.isa;
    if (can_run(row.isa)) all.push_back(packing);
  }
  return all;
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_Q8_ISA_H_
