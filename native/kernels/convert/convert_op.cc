// convert: quantize, dequantize, requantize or cast, by the dtypes and scales of x and y; any strides.
#include <cstring>

#include "kernels/convert/cast.h"
#include "kernels/convert/convert.h"
#include "kernels/copy/planes.h"
#include "kernels/copy/transpose.h"
#include "kernels/elementwise_q8/elementwise_q8.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

enum class Conversion { kQuantize, kDequantize, kRequantize, kCast };

Conversion conversion_of(const TensorView& x, const TensorView& y) {
  if (x.dtype == Dtype::kF32 && is_q8(y.dtype) && y.scale > 0) return Conversion::kQuantize;
  if (is_q8(x.dtype) && y.dtype == Dtype::kF32 && x.scale > 0) return Conversion::kDequantize;
  if (is_q8(x.dtype) && is_q8(y.dtype) && x.scale > 0 && y.scale > 0) return Conversion::kRequantize;
  return Conversion::kCast;
}

Status check_quantization(const char* name, const TensorView& view) {
  EK_RETURN_IF_ERROR(check_scale(name, view.scale));
  return check_clamp_q8(view.dtype, view.zero_point, view.zero_point, view.zero_point);
}

bool has_table(const OpArgs& args) { return args.input_count > 1 && args.inputs[1] != nullptr; }

Status check_convert(const OpArgs& args) {
  const TensorView& x = args.in(0);
  const TensorView& y = args.out(0);
  EK_RETURN_IF_ERROR(expect_same_dims("x", x, "y", y));
  EK_RETURN_IF_ERROR(expect_writable("y", y));
  const Conversion conversion = conversion_of(x, y);
  if (has_table(args)) {
    if (conversion != Conversion::kDequantize) return invalid("convert: a table is for dequantizing only");
    EK_RETURN_IF_ERROR(expect_vector("table", args.in(1), Dtype::kF32, 256));
  }
  if (conversion == Conversion::kCast) return Status::ok();
  if (conversion != Conversion::kQuantize) EK_RETURN_IF_ERROR(check_quantization("scale of x", x));
  if (conversion != Conversion::kDequantize) EK_RETURN_IF_ERROR(check_quantization("scale of y", y));
  if (conversion == Conversion::kRequantize) return check_scale("ratio of scales", x.scale / y.scale);
  return Status::ok();
}

// Requantizing has 256 cases: a table by the bits of x.
void fill_requantize_lut(const TensorView& x, const TensorView& y, uint8_t (&lut)[256]) {
  const float ratio = x.scale / y.scale;
  const int32_t low = y.dtype == Dtype::kS8 ? -128 : 0;
  const float v_min = static_cast<float>(low - y.zero_point);
  const float v_max = static_cast<float>(low + 255 - y.zero_point);
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t value = q8_value(static_cast<uint8_t>(byte), x.dtype == Dtype::kS8) - x.zero_point;
    lut[byte] = static_cast<uint8_t>(round_half_even(clamp_float(static_cast<float>(value) * ratio, v_min, v_max)) +
                                     y.zero_point);
  }
}

// y = table[x] as floats; the table starts at the least value of x. Bytes are loaded eight at a time: every load and
// store counts here. Sixteen AVX-512 registers of table and permutes took longer.
void look_up_row(const DequantizeRow& r, const float* table) {
  const uint64_t flip = r.is_signed ? 0x8080808080808080 : 0;
  const uint8_t* const x = r.x;
  float* const y = r.y;
  int64_t i = 0;
  for (; r.x_stride == 1 && r.y_stride == 1 && i + 8 <= r.n; i += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, x + i, sizeof(bytes));
    bytes ^= flip;
#pragma GCC unroll 8
    for (int at = 0; at < 8; ++at) y[i + at] = table[bytes >> 8 * at & 0xff];
  }
  for (; i < r.n; ++i) y[i * r.y_stride] = table[x[i * r.x_stride] ^ (flip & 0xff)];
}

struct RowRunner {
  Conversion conversion;
  const TensorView& x;
  const TensorView& y;
  const float* table;
  const ConvertKernels& kernels;
  const ElementwiseQ8Kernels& bytes;
  uint8_t lut[256];

  void quantize(const float* from, int64_t x_stride, uint8_t* to, int64_t y_stride, int64_t n) const {
    kernels.quantize_row({from, x_stride, to, y_stride, n, y.scale, y.zero_point, y.dtype == Dtype::kS8});
  }

  void dequantize(const uint8_t* from, int64_t x_stride, float* to, int64_t y_stride, int64_t n) const {
    const DequantizeRow row = {from, x_stride, to, y_stride, n, x.scale, x.zero_point, x.dtype == Dtype::kS8};
    table != nullptr ? look_up_row(row, table) : kernels.dequantize_row(row);
  }

  void run(int64_t x_at, int64_t x_stride, int64_t y_at, int64_t y_stride, int64_t n) const {
    switch (conversion) {
      case Conversion::kQuantize:
        return quantize(x.as<float>() + x_at, x_stride, y.as<uint8_t>() + y_at, y_stride, n);
      case Conversion::kDequantize:
        return dequantize(x.as<uint8_t>() + x_at, x_stride, y.as<float>() + y_at, y_stride, n);
      case Conversion::kRequantize:
        return bytes.lut_row({x.as<uint8_t>() + x_at, x_stride, y.as<uint8_t>() + y_at, y_stride, n, lut, false});
      case Conversion::kCast:
        return select_cast(x.dtype, y.dtype)({x.as<std::byte>() + x_at * dtype_bytes(x.dtype), x_stride,
                                              y.as<std::byte>() + y_at * dtype_bytes(y.dtype), y_stride, n});
    }
  }
};

// A piece of transposed images, in tiles whose bytes lie as the floats do in between: rows of floats are read and
// written whole. The piece's x are the bytes and its y the floats, whichever way they go.
void run_piece(const RowRunner& runner, const PlanePiece& p) {
  constexpr int64_t kTileBytes = 4096;
  const int64_t step = p.columns <= 4 ? kTileBytes / 4 : 64, most_columns = kTileBytes / step;
  uint8_t tile[kTileBytes];
  for (int64_t column = 0; column < p.columns; column += most_columns) {
    const int64_t columns = std::min(most_columns, p.columns - column);
    for (int64_t row = 0; row < p.rows; row += step) {
      const int64_t rows = std::min(step, p.rows - row), bytes_at = p.x_at + row * p.x_step + column;
      const int64_t floats_at = p.y_at + column * p.y_step + row;
      if (runner.conversion == Conversion::kDequantize) {
        transpose_plane(runner.x.as<uint8_t>() + bytes_at, p.x_step, tile, step, rows, columns, 1);
        float* y = runner.y.as<float>() + floats_at;
        for (int64_t c = 0; c < columns; ++c) runner.dequantize(tile + c * step, 1, y + c * p.y_step, 1, rows);
        continue;
      }
      const float* x = runner.x.as<float>() + floats_at;
      for (int64_t c = 0; c < columns; ++c) runner.quantize(x + c * p.y_step, 1, tile + c * step, 1, rows);
      uint8_t* y = runner.y.as<uint8_t>() + bytes_at;
      if (columns == 3 && p.x_step == 3) {
        runner.kernels.interleave_3({tile, step, y, rows});
      } else {
        transpose_plane(tile, step, y, p.x_step, columns, rows, 1);
      }
    }
  }
}

// Rows run along the memory of the wider side: where x or y is a transposed image (NCHW against NHWC), that makes the
// cheaper rows.
Status run_convert(const OpArgs& args, RunContext& context) {
  const TensorView &x = args.in(0), &y = args.out(0);
  const bool narrows = dtype_bytes(x.dtype) > dtype_bytes(y.dtype);
  const TensorView* const views[] = {narrows ? &y : &x, narrows ? &x : &y};  // the narrower and the wider
  const LoopNest<2> nest = collapse_by_output(views);
  const ConvertKernels& kernels = select_convert(context.isa);
  const float* table = has_table(args) ? args.in(1).as<const float>() : nullptr;
  RowRunner runner{conversion_of(x, y), x, y, table, kernels, select_elementwise_q8(context.isa), {}};
  if (runner.conversion == Conversion::kRequantize) fill_requantize_lut(x, y, runner.lut);
  const bool to_or_from_floats =
      runner.conversion == Conversion::kQuantize || runner.conversion == Conversion::kDequantize;
  if (to_or_from_floats && plane_loop(nest) >= 0) {
    parallel_planes(context, nest, kernels.element_ns, [&](const PlanePiece& piece) { run_piece(runner, piece); });
    return Status::ok();
  }
  const int narrow = narrows ? 1 : 0;
  parallel_runs(context, nest, kernels.element_ns, [&](const int64_t(&at)[2], int64_t n) {
    runner.run(at[narrow], nest.run_stride(narrow), at[1 - narrow], nest.run_stride(1 - narrow), n);
  });
  return Status::ok();
}

std::string kernel(const OpArgs& args, Isa isa) {
  switch (conversion_of(args.in(0), args.out(0))) {
    case Conversion::kRequantize:
      return select_elementwise_q8(isa).name;
    case Conversion::kCast:
      return "convert_scalar";
    default:
      return has_table(args) ? "convert_scalar" : select_convert(isa).name;
  }
}

}  // namespace

const OpDef kConvertOp = {Opcode::kConvert, "convert", check_convert, nullptr, run_convert, nullptr, nullptr, kernel};

}  // namespace edgekit
