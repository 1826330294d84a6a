#include "kernels/convert/convert.h"

#include "core/cpu_features.h"

namespace edgekit {
namespace {

constexpr ConvertKernels kKernels[] = {
#define EK_CONVERT(space, isa, element_ns) \
  {"convert_" #space, Isa::isa, element_ns, space::quantize_row, space::dequantize_row, space::interleave_3},
#include "kernels/convert/kernels.inc"
#undef EK_CONVERT
};

}  // namespace

ConvertTable convert_kernels() { return {kKernels, kKernels + sizeof(kKernels) / sizeof(kKernels[0])}; }

const ConvertKernels& select_convert(Isa isa) {
  const ConvertKernels* chosen = kKernels;
  for (const ConvertKernels& kernels : kKernels) {
    if (isa_includes(isa, kernels.isa)) chosen = &kernels;
  }
  return *chosen;
}

}  // namespace edgekit
