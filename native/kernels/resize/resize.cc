#include "kernels/resize/resize.h"

#include "kernels/operand_check.h"

namespace edgekit {
namespace {

#define EK_KERNELS(isa, space) {Isa::isa, #space, space::resize_kernels},
constexpr Variant<ResizeKernels> kVariants[] = {
#include "kernels/resize/kernels.inc"
};
#undef EK_KERNELS

}  // namespace

const ResizeKernels& resize_kernels(Isa isa) { return select_variant(kVariants, isa); }

const char* resize_kernel_space(Isa isa) { return best_variant(kVariants, isa).name; }

Status expect_index_table(const char* name, const TensorView& table, int32_t count, int32_t limit) {
  EK_RETURN_IF_ERROR(expect_vector(name, table, Dtype::kI32, count));
  if (table.data == nullptr) return invalid("%s is not a constant", name);
  for (int32_t i = 0; i < count; ++i) {
    EK_RETURN_IF_ERROR(expect_in_range(name, table.as<const int32_t>()[i], 0, limit - 1));
  }
  return Status::ok();
}

}  // namespace edgekit
