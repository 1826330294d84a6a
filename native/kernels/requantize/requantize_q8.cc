#include "kernels/requantize/requantize_q8.h"

#include "core/cpu_features.h"
#include "kernels/operand_check.h"

namespace edgekit {

Status check_scale(const char* name, float scale) {
  if (std::fabs(scale) <= kMaxScale) return Status::ok();  // false for NaN
  return invalid("%s is %g, expected a finite scale of at most %g", name, static_cast<double>(scale),
                 static_cast<double>(kMaxScale));
}

Status check_clamp_q8(Dtype dtype, int32_t zero, int32_t least, int32_t most) {
  const int64_t low = dtype == Dtype::kU8 ? 0 : -128;
  EK_RETURN_IF_ERROR(expect_in_range("zero point", zero, low, low + 255));
  EK_RETURN_IF_ERROR(expect_in_range("lower clamp", least, low, low + 255));
  return expect_in_range("upper clamp", most, least, low + 255);
}

Status check_requantize(const RequantizeAttrs& a, const RequantizeOperands& operands) {
  const TensorView& y = operands.y;
  EK_RETURN_IF_ERROR(expect_q8("y", y));
  EK_RETURN_IF_ERROR(check_clamp_q8(y.dtype, a.x_zero, a.y_min, a.y_max));
  EK_RETURN_IF_ERROR(check_clamp_q8(y.dtype, a.y_zero, a.y_min, a.y_max));
  EK_RETURN_IF_ERROR(expect_vector("scale", operands.scale, Dtype::kF32, y.dims[3]));
  EK_RETURN_IF_ERROR(expect_constant("scale", operands.scale));
  for (int32_t i = 0; i < y.dims[3]; ++i) EK_RETURN_IF_ERROR(check_scale("scale", operands.scale.as<float>()[i]));
  if (a.fuse_lut != 0) {
    if (operands.lut == nullptr) return invalid("fuse_lut is set, but there is no lut");
    EK_RETURN_IF_ERROR(expect_vector("lut", *operands.lut, y.dtype, 256));
    EK_RETURN_IF_ERROR(expect_constant("lut", *operands.lut));
  }
  if (a.fuse_add == 0) return Status::ok();
  if (operands.residual == nullptr) return invalid("fuse_add is set, but there is no residual");
  EK_RETURN_IF_ERROR(expect_dtype("residual", *operands.residual, y.dtype));
  EK_RETURN_IF_ERROR(expect_same_dims("residual", *operands.residual, "y", y));
  EK_RETURN_IF_ERROR(expect_image("residual", *operands.residual));
  for (const int32_t zero : {a.add_lhs_zero, a.add_rhs_zero, a.add_zero}) {
    EK_RETURN_IF_ERROR(check_clamp_q8(y.dtype, zero, a.add_min, a.add_max));
  }
  EK_RETURN_IF_ERROR(check_scale("add_lhs_scale", a.add_lhs_scale));
  return check_scale("add_rhs_scale", a.add_rhs_scale);
}

void fill_lut_steps(const uint8_t* lut, uint8_t (&steps)[256]) {
  for (int i = 0; i < 256; ++i) steps[i] = static_cast<uint8_t>(i % 128 < 16 ? lut[i] : lut[i] ^ lut[i - 16]);
}

RequantizeQ8 requantize_params(const RequantizeAttrs& a, const RequantizeOperands& operands) {
  RequantizeQ8 p{};
  p.y_zero = a.y_zero;
  p.y_min = a.y_min;
  p.y_max = a.y_max;
  p.v_min = static_cast<float>(a.y_min - a.y_zero);
  p.v_max = static_cast<float>(a.y_max - a.y_zero);
  p.scale_below_one = true;
  for (int32_t i = 0; i < operands.y.dims[3]; ++i) {
    p.scale_below_one &= std::fabs(operands.scale.as<float>()[i]) < 1.0f;
  }
  p.lut = a.fuse_lut != 0 ? operands.lut->as<uint8_t>() : nullptr;
  if (p.lut != nullptr) fill_lut_steps(p.lut, p.lut_steps);
  p.permutes_bytes = cpu_has("avx512vbmi");
  p.add = a.fuse_add != 0;
  if (!p.add) return p;  // the other attributes mean nothing then, and nobody has checked them
  p.residual.lhs_zero = a.add_lhs_zero;
  p.residual.rhs_zero = a.add_rhs_zero;
  p.residual.lhs_scale = a.add_lhs_scale;
  p.residual.rhs_scale = a.add_rhs_scale;
  p.residual.zero = a.add_zero;
  p.residual.v_min = static_cast<float>(a.add_min - a.add_zero);
  p.residual.v_max = static_cast<float>(a.add_max - a.add_zero);
  const float most = 255.0f * (std::fabs(a.add_lhs_scale) + std::fabs(a.add_rhs_scale));
  p.adds_directly = p.lut == nullptr && a.add_lhs_zero == a.y_zero && most < 1e9f;
  return p;
}

}  // namespace edgekit
