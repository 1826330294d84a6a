#include "kernels/winograd/winograd_q8.h"

#include "kernels/variant.h"

namespace edgekit {

const WinogradQ8Kernels& select_winograd_q8(Isa isa) {
  static constexpr Variant<WinogradQ8Kernels> kRows[] = {
#define EK_KERNELS(isa, space) {Isa::isa, #space, &space::winograd_q8_kernels},
#include "kernels/winograd/kernels.inc"
#undef EK_KERNELS
  };
  return select_variant(kRows, isa);
}

}  // namespace edgekit
