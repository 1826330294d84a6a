#include <cstring>

#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"
#include "kernels/resize/resize.h"

namespace edgekit {
namespace {

Status check(const OpArgs& args) {
  const TensorView &x = args.in(0), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_same_dtype("x", x, "y", y));
  EK_RETURN_IF_ERROR(expect_image("x", x));
  EK_RETURN_IF_ERROR(expect_image("y", y));
  if (x.dims[0] != y.dims[0] || x.dims[3] != y.dims[3]) return invalid("resize: x and y differ in batch or channels");
  EK_RETURN_IF_ERROR(expect_index_table("iy", args.in(1), y.dims[1], x.dims[1]));
  EK_RETURN_IF_ERROR(expect_index_table("ix", args.in(2), y.dims[2], x.dims[2]));
  return expect_writable("y", y);
}

// One output row by moves of whole pixels; `bytes` as a template argument turns memmove into a few instructions.
template <size_t bytes>
void move_pixels(const char* x, int64_t x_step, char* y, int64_t y_step, const int32_t* ix, int64_t count, size_t) {
  for (int64_t ox = 0; ox < count; ++ox) std::memmove(y + ox * y_step, x + ix[ox] * x_step, bytes);
}

void move_pixels_of_any_size(const char* x, int64_t x_step, char* y, int64_t y_step, const int32_t* ix, int64_t count,
                             size_t bytes) {
  for (int64_t ox = 0; ox < count; ++ox) std::memmove(y + ox * y_step, x + ix[ox] * x_step, bytes);
}

using MovePixels = void (*)(const char*, int64_t, char*, int64_t, const int32_t*, int64_t, size_t);

MovePixels pixel_mover(size_t bytes) {
  switch (bytes) {
    case 1:
      return move_pixels<1>;
    case 4:
      return move_pixels<4>;
    case 16:
      return move_pixels<16>;
    case 32:
      return move_pixels<32>;
    case 64:
      return move_pixels<64>;
    case 128:
      return move_pixels<128>;
    default:
      return move_pixels_of_any_size;
  }
}

Status run(const OpArgs& args, RunContext& context) {
  const TensorView &x = args.in(0), &y = args.out(0);
  const int32_t *iy = args.in(1).as<const int32_t>(), *ix = args.in(2).as<const int32_t>();
  const int64_t element = dtype_bytes(y.dtype), width = y.dims[2];
  const size_t pixel_bytes = static_cast<size_t>(y.dims[3] * element);
  const MovePixels move = pixel_mover(pixel_bytes);
  const bool dense_rows = width == 1 || y.strides[2] == y.dims[3];
  const double row_ns = static_cast<double>(width) * (1.5 + 0.05 * static_cast<double>(pixel_bytes));
  parallel_for(context, int64_t{y.dims[0]} * y.dims[1], row_ns, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / y.dims[1], oy = row % y.dims[1];
      char* to = y.as<char>() + (n * y.strides[0] + oy * y.strides[1]) * element;
      if (dense_rows && oy > 0 && row > begin && iy[oy] == iy[oy - 1]) {  // the row above is the same
        std::memmove(to, to - y.strides[1] * element, static_cast<size_t>(width) * pixel_bytes);
        continue;
      }
      const char* from = x.as<const char>() + (n * x.strides[0] + iy[oy] * x.strides[1]) * element;
      move(from, x.strides[2] * element, to, y.strides[2] * element, ix, width, pixel_bytes);
    }
  });
  return Status::ok();
}

}  // namespace

const OpDef kResizeNearestOp = {Opcode::kResizeNearest, "resize_nearest", check, nullptr, run};

}  // namespace edgekit
