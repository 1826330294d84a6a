#include "kernels/operand_check.h"

#include <cstdarg>
#include <cstdio>
#include <string>

namespace edgekit {
namespace {

std::string dims_text(const TensorView& view) {
  std::string text = "[";
  for (int i = 0; i < view.rank; ++i) text += (i ? ", " : "") + std::to_string(view.dims[i]);
  return text + "]";
}

}  // namespace

Status invalid(const char* format, ...) {
  char message[320];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  return Status(StatusCode::kInvalidProgram, message);
}

bool same_dims(const TensorView& a, const TensorView& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (a.dims[i] != b.dims[i]) return false;
  }
  return true;
}

Status expect_dtype(const char* name, const TensorView& view, Dtype dtype) {
  if (view.dtype == dtype) return Status::ok();
  return invalid("%s has dtype %s, expected %s", name, name_of(view.dtype), name_of(dtype));
}

Status expect_q8(const char* name, const TensorView& view) {
  if (is_q8(view.dtype)) return Status::ok();
  return invalid("%s has dtype %s, expected u8 or s8", name, name_of(view.dtype));
}

Status expect_same_dtype(const char* name_a, const TensorView& a, const char* name_b, const TensorView& b) {
  if (a.dtype == b.dtype) return Status::ok();
  return invalid("%s has dtype %s, %s has %s", name_a, name_of(a.dtype), name_b, name_of(b.dtype));
}

Status expect_same_dims(const char* name_a, const TensorView& a, const char* name_b, const TensorView& b) {
  if (same_dims(a, b)) return Status::ok();
  return invalid("%s has dims %s, %s has %s", name_a, dims_text(a).c_str(), name_b, dims_text(b).c_str());
}

Status expect_rank(const char* name, const TensorView& view, int least, int greatest) {
  if (view.rank >= least && view.rank <= greatest) return Status::ok();
  return invalid("%s has rank %d, expected %d to %d", name, view.rank, least, greatest);
}

Status expect_image(const char* name, const TensorView& view) {
  if (view.rank != 4) return invalid("%s has rank %d, expected 4 [N, H, W, C]", name, view.rank);
  if (view.dims[3] > 1 && view.strides[3] != 1) {
    return invalid("%s has stride %lld on channels, expected 1", name, static_cast<long long>(view.strides[3]));
  }
  return Status::ok();
}

Status expect_vector(const char* name, const TensorView& view, Dtype dtype, int64_t count) {
  return expect_dense(name, view, dtype, &count, 1);
}

Status expect_dense(const char* name, const TensorView& view, Dtype dtype, const int64_t* dims, int rank) {
  EK_RETURN_IF_ERROR(expect_dtype(name, view, dtype));
  bool equal = view.rank == rank;
  for (int i = 0; equal && i < rank; ++i) equal = view.dims[i] == dims[i];
  if (!equal) {
    std::string expected;
    for (int i = 0; i < rank; ++i) expected += (i ? ", " : "") + std::to_string(dims[i]);
    return invalid("%s has dims %s, expected [%s]", name, dims_text(view).c_str(), expected.c_str());
  }
  if (!view.is_dense()) return invalid("%s is not dense", name);
  return Status::ok();
}

Status expect_constant(const char* name, const TensorView& view) {
  return view.data != nullptr ? Status::ok() : invalid("%s is not a constant", name);
}

Status expect_in_range(const char* name, int64_t value, int64_t least, int64_t greatest) {
  if (value >= least && value <= greatest) return Status::ok();
  return invalid("%s is %lld, expected %lld to %lld", name, static_cast<long long>(value),
                 static_cast<long long>(least), static_cast<long long>(greatest));
}

Status expect_writable(const char* name, const TensorView& view) {
  for (int i = 0; i < view.rank; ++i) {
    if (view.dims[i] > 1 && view.strides[i] == 0) return invalid("%s has stride 0 on axis %d of an output", name, i);
  }
  return Status::ok();
}

}  // namespace edgekit
