#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/reduce/reduce_loops.h"
#include "kernels/requantize/requantize_q8.h"

namespace edgekit {
namespace {

bool fits(ReduceKind kind, Dtype dtype) {
  const bool extreme = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  switch (dtype) {
    case Dtype::kF32:
      return true;
    case Dtype::kI32:
    case Dtype::kI64:
      return extreme || kind == ReduceKind::kSum || kind == ReduceKind::kProd || kind == ReduceKind::kMean;
    case Dtype::kU8:
    case Dtype::kS8:
      return extreme || kind == ReduceKind::kMean;
    default:
      return false;
  }
}

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<ReduceAttrs>();
  const TensorView &x = args.in(0), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_in_range("kind", attrs.kind, 0, kReduceKindCount - 1));
  EK_RETURN_IF_ERROR(expect_same_dtype("x", x, "y", y));
  const auto kind = static_cast<ReduceKind>(attrs.kind);
  if (!fits(kind, x.dtype)) return invalid("reduce %s on %s", name_of(kind), name_of(x.dtype));
  EK_RETURN_IF_ERROR(expect_in_range("axes_mask", attrs.axes_mask, 0, (1 << x.rank) - 1));
  EK_RETURN_IF_ERROR(expect_rank("y", y, x.rank, x.rank));
  for (int i = 0; i < x.rank; ++i) {
    const int32_t expected = (attrs.axes_mask >> i & 1) != 0 ? 1 : x.dims[i];
    if (y.dims[i] != expected)
      return invalid("reduce: y has extent %d on axis %d, expected %d", y.dims[i], i, expected);
  }
  if (is_q8(x.dtype) && kind == ReduceKind::kMean) {
    const int least = x.dtype == Dtype::kS8 ? -128 : 0;
    EK_RETURN_IF_ERROR(expect_in_range("x_zero", attrs.x_zero, least, least + 255));
    EK_RETURN_IF_ERROR(expect_in_range("y_zero", attrs.y_zero, least, least + 255));
    if (!std::isfinite(attrs.ratio)) return invalid("reduce: ratio is not finite");
  }
  return expect_writable("y", y);
}

// y = finish(accumulated), accumulated = update(accumulated, value) from `start` over the reduced elements in order.
template <typename T, typename Acc, typename Update, typename Finish>
void fold(const OpArgs& args, RunContext& context, Acc start, Update&& update, Finish&& finish) {
  const TensorView &x = args.in(0), &y = args.out(0);
  const ReduceLoops loops = reduce_loops(x, y, static_cast<uint32_t>(args.attrs<ReduceAttrs>().axes_mask));
  const int64_t x_step = loops.kept.run_stride(0), y_step = loops.kept.run_stride(1);
  parallel_blocks(context, loops, [&](int64_t x_at, int64_t y_at, int64_t count) {
    Acc accumulated[kReduceBlock];
    std::fill_n(accumulated, count, start);
    for_each_reduced(loops.reduced, x.as<const T>() + x_at, x_step, count,
                     [&](int64_t j, T value) { accumulated[j] = update(accumulated[j], value); });
    for (int64_t j = 0; j < count; ++j) y.as<T>()[y_at + j * y_step] = finish(accumulated[j]);
  });
}

template <typename T>
void fold_extreme(const OpArgs& args, RunContext& context, bool greatest) {
  constexpr bool is_float = std::is_floating_point_v<T>;
  const T least = is_float ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
  const T most = is_float ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  const auto same = [](T value) { return value; };
  // NaN wins: it differs from itself, and once it is the best no value compares above or below it.
  const auto greater = [](T best, T value) { return value > best || value != value ? value : best; };
  const auto less = [](T best, T value) { return value < best || value != value ? value : best; };
  greatest ? fold<T>(args, context, least, greater, same) : fold<T>(args, context, most, less, same);
}

// log(sum(exp(x))), with the greatest element taken out so that nothing overflows.
void fold_log_sum_exp(const OpArgs& args, RunContext& context) {
  const TensorView &x = args.in(0), &y = args.out(0);
  const ReduceLoops loops = reduce_loops(x, y, static_cast<uint32_t>(args.attrs<ReduceAttrs>().axes_mask));
  const int64_t x_step = loops.kept.run_stride(0), y_step = loops.kept.run_stride(1);
  parallel_blocks(context, loops, [&](int64_t x_at, int64_t y_at, int64_t count) {
    const float* from = x.as<const float>() + x_at;
    double greatest[kReduceBlock], sums[kReduceBlock] = {};
    std::fill_n(greatest, count, -std::numeric_limits<double>::infinity());
    for_each_reduced(loops.reduced, from, x_step, count, [&](int64_t j, float value) {
      if (value > greatest[j]) greatest[j] = value;
    });
    for (int64_t j = 0; j < count; ++j) {
      if (!std::isfinite(greatest[j])) greatest[j] = 0.0;
    }
    for_each_reduced(loops.reduced, from, x_step, count,
                     [&](int64_t j, float value) { sums[j] += std::exp(value - greatest[j]); });
    for (int64_t j = 0; j < count; ++j) {
      y.as<float>()[y_at + j * y_step] = static_cast<float>(greatest[j] + std::log(sums[j]));
    }
  });
}

void reduce_floats(const OpArgs& args, RunContext& context, ReduceKind kind, double count) {
  const auto add = [](double sum, float value) { return sum + value; };
  const auto add_magnitude = [](double sum, float value) { return sum + std::fabs(value); };
  const auto add_square = [](double sum, float value) { return sum + static_cast<double>(value) * value; };
  const auto round = [](double sum) { return static_cast<float>(sum); };
  switch (kind) {
    case ReduceKind::kMean:
      return fold<float>(args, context, 0.0, add, [=](double sum) { return static_cast<float>(sum / count); });
    case ReduceKind::kMax:
      return fold_extreme<float>(args, context, true);
    case ReduceKind::kMin:
      return fold_extreme<float>(args, context, false);
    case ReduceKind::kSum:
      return fold<float>(args, context, 0.0, add, round);
    case ReduceKind::kProd:
      return fold<float>(args, context, 1.0, [](double product, float value) { return product * value; }, round);
    case ReduceKind::kL1:
      return fold<float>(args, context, 0.0, add_magnitude, round);
    case ReduceKind::kL2:
      return fold<float>(args, context, 0.0, add_square, [](double sum) { return static_cast<float>(std::sqrt(sum)); });
    case ReduceKind::kSumSquare:
      return fold<float>(args, context, 0.0, add_square, round);
    case ReduceKind::kLogSum:
      return fold<float>(args, context, 0.0, add, [](double sum) { return static_cast<float>(std::log(sum)); });
    case ReduceKind::kLogSumExp:
      return fold_log_sum_exp(args, context);
  }
}

// Sums and products wrap as the hardware does, in the unsigned type.
template <typename T>
void reduce_integers(const OpArgs& args, RunContext& context, ReduceKind kind, int64_t count) {
  const auto add = [](uint64_t sum, T value) { return sum + static_cast<uint64_t>(value); };
  const auto multiply = [](uint64_t product, T value) { return product * static_cast<uint64_t>(value); };
  const auto wrapped = [](uint64_t value) { return static_cast<T>(value); };
  switch (kind) {
    case ReduceKind::kMax:
      return fold_extreme<T>(args, context, true);
    case ReduceKind::kMin:
      return fold_extreme<T>(args, context, false);
    case ReduceKind::kSum:
      return fold<T>(args, context, uint64_t{0}, add, wrapped);
    case ReduceKind::kProd:
      return fold<T>(args, context, uint64_t{1}, multiply, wrapped);
    default:
      return fold<T>(args, context, uint64_t{0}, add,
                     [=](uint64_t sum) { return static_cast<T>(static_cast<int64_t>(sum) / count); });
  }
}

// Sum: an integer that holds the sum of `count` values less their zero points.
template <typename T, typename Sum>
void mean_q8(const OpArgs& args, RunContext& context, int64_t count) {
  const auto& attrs = args.attrs<ReduceAttrs>();
  const float low = static_cast<float>(std::numeric_limits<T>::min() - attrs.y_zero);
  const float high = static_cast<float>(std::numeric_limits<T>::max() - attrs.y_zero);
  const Sum zeros = static_cast<Sum>(count) * attrs.x_zero;
  const auto add = [](Sum sum, T value) { return static_cast<Sum>(sum + value); };
  fold<T>(args, context, Sum{0}, add, [=](Sum sum) {
    const float v = static_cast<float>(sum - zeros) / static_cast<float>(count) * attrs.ratio;
    return static_cast<T>(round_half_even(std::min(std::max(v, low), high)) + attrs.y_zero);
  });
}

template <typename T>
void reduce_q8(const OpArgs& args, RunContext& context, ReduceKind kind, int64_t count) {
  if (kind != ReduceKind::kMean) return fold_extreme<T>(args, context, kind == ReduceKind::kMax);
  constexpr int64_t kMostOf32Bits = std::numeric_limits<int32_t>::max() / 256;
  // Vectors hold twice as many of the narrow ones.
  count <= kMostOf32Bits ? mean_q8<T, int32_t>(args, context, count) : mean_q8<T, int64_t>(args, context, count);
}

Status run(const OpArgs& args, RunContext& context) {
  const auto& attrs = args.attrs<ReduceAttrs>();
  const auto kind = static_cast<ReduceKind>(attrs.kind);
  const int64_t count = reduce_loops(args.in(0), args.out(0), static_cast<uint32_t>(attrs.axes_mask)).reduced_count();
  switch (args.in(0).dtype) {
    case Dtype::kF32:
      reduce_floats(args, context, kind, static_cast<double>(count));
      break;
    case Dtype::kI32:
      reduce_integers<int32_t>(args, context, kind, count);
      break;
    case Dtype::kI64:
      reduce_integers<int64_t>(args, context, kind, count);
      break;
    case Dtype::kU8:
      reduce_q8<uint8_t>(args, context, kind, count);
      break;
    default:
      reduce_q8<int8_t>(args, context, kind, count);
  }
  return Status::ok();
}

}  // namespace

const OpDef kReduceOp = {Opcode::kReduce, "reduce", check, nullptr, run};

}  // namespace edgekit
