#include "tests/op_case.h"

#include <cmath>
#include <memory>

#include "core/cpu_features.h"
#include "core/float_mode.h"
#include "tests/check.h"
#include "tests/q8_isa.h"
#include "tests/run_op.h"

namespace edgekit::test {
namespace {

enum class Layout { kDense, kPadded, kReversed, kPermuted };
constexpr uint8_t kCanary = 0xA5;

void write_element(void* base, Dtype dtype, int64_t at, double value) {
  switch (dtype) {
    case Dtype::kF32:
      static_cast<float*>(base)[at] = static_cast<float>(value);
      break;
    case Dtype::kI32:
      static_cast<int32_t*>(base)[at] = static_cast<int32_t>(value);
      break;
    case Dtype::kI64:
      static_cast<int64_t*>(base)[at] = static_cast<int64_t>(value);
      break;
    case Dtype::kS8:
      static_cast<int8_t*>(base)[at] = static_cast<int8_t>(value);
      break;
    default:
      static_cast<uint8_t*>(base)[at] = static_cast<uint8_t>(value);
  }
}

double read_element(const void* base, Dtype dtype, int64_t at) {
  switch (dtype) {
    case Dtype::kF32:
      return static_cast<double>(static_cast<const float*>(base)[at]);
    case Dtype::kI32:
      return static_cast<const int32_t*>(base)[at];
    case Dtype::kI64:
      return static_cast<double>(static_cast<const int64_t*>(base)[at]);
    case Dtype::kS8:
      return static_cast<const int8_t*>(base)[at];
    default:
      return static_cast<const uint8_t*>(base)[at];
  }
}

// An operand in memory.
struct Placed {
  TensorView view;
  std::unique_ptr<GuardedBuffer> memory;
  size_t bytes = 0;
  std::vector<bool> owned;  // bytes that belong to elements
};

// Strides of the layout, and the offset of element [0, ..., 0]; returns the extent in elements.
int64_t lay_out(const Operand& operand, Layout layout, TensorView& view, int64_t& origin) {
  const int rank = view.rank;
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  const int movable = operand.image ? rank - 1 : rank;
  if (layout == Layout::kPermuted) std::reverse(order.begin(), order.begin() + movable);
  int64_t extent = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const int axis = order[static_cast<size_t>(i)];
    if ((operand.broadcast_axes >> axis & 1) != 0) {
      view.strides[axis] = 0;
      continue;
    }
    view.strides[axis] = extent;
    extent *= view.dims[axis];
    const bool keeps_dense = operand.image && i == rank - 1;
    if (layout == Layout::kPadded) extent += keeps_dense ? 3 : 1;
    if (layout == Layout::kPadded && i == rank - 1 && !keeps_dense) {
      view.strides[axis] = 2;
      extent *= 2;
    }
  }
  origin = 0;
  for (int i = 0; layout == Layout::kReversed && i < movable; ++i) {
    origin += view.strides[i] * (view.dims[i] - 1);
    view.strides[i] = -view.strides[i];
  }
  return extent;
}

int64_t offset_of(const TensorView& view, const Dims& index) {
  int64_t offset = 0;
  for (int i = 0; i < view.rank; ++i) offset += index[static_cast<size_t>(i)] * view.strides[i];
  return offset;
}

Placed place(const Operand& operand, Layout layout, GuardedBuffer::Flush flush) {
  Placed placed;
  placed.view.dtype = operand.dtype;
  placed.view.rank = static_cast<int>(operand.dims.size());
  std::copy(operand.dims.begin(), operand.dims.end(), placed.view.dims);
  int64_t origin = 0;
  lay_out(operand, operand.fixed ? Layout::kDense : layout, placed.view, origin);
  const int64_t element = dtype_bytes(operand.dtype);
  // The last element touched ends the buffer: padding behind it would hide a fault.
  int64_t last = 0;
  for_each_index(operand.dims,
                 [&](const Dims& index) { last = std::max(last, origin + offset_of(placed.view, index)); });
  placed.bytes = static_cast<size_t>((last + 1) * element);
  placed.memory = std::make_unique<GuardedBuffer>(placed.bytes, flush);
  placed.owned.resize(placed.bytes);
  std::memset(placed.memory->as<uint8_t>(), kCanary, placed.bytes);
  placed.view.data = placed.memory->as<uint8_t>() + origin * element;
  size_t next = 0;
  Dims source_dims = operand.dims;
  for (size_t i = 0; i < source_dims.size(); ++i) {
    if ((operand.broadcast_axes >> i & 1) != 0) source_dims[i] = 1;
  }
  for_each_index(operand.dims, [&](const Dims& index) {
    const int64_t at = origin + offset_of(placed.view, index);
    for (int64_t b = 0; b < element; ++b) placed.owned[static_cast<size_t>(at * element + b)] = true;
  });
  if (operand.values.empty()) return placed;
  for_each_index(source_dims, [&](const Dims& index) {
    write_element(placed.view.data, operand.dtype, offset_of(placed.view, index), operand.values[next++]);
  });
  return placed;
}

Values read_back(const Operand& operand, const Placed& placed) {
  Values values;
  for_each_index(operand.dims, [&](const Dims& index) {
    values.push_back(read_element(placed.view.data, operand.dtype, offset_of(placed.view, index)));
  });
  return values;
}

bool canaries_whole(const Placed& placed) {
  for (size_t i = 0; i < placed.bytes; ++i) {
    if (!placed.owned[i] && placed.memory->as<uint8_t>()[i] != kCanary) return false;
  }
  return true;
}

// A case in memory, with the pointers that OpArgs wants.
struct PlacedCase {
  std::vector<Placed> inputs, outputs;
  std::vector<const TensorView*> input_views, output_views;
  OpArgs args;
};

void place_case(const OpCase& op_case, Layout layout, GuardedBuffer::Flush flush, PlacedCase& placed) {
  const auto add = [&](const std::vector<Operand>& operands, std::vector<Placed>& list,
                       std::vector<const TensorView*>& views) {
    list.reserve(operands.size());
    for (const Operand& operand : operands) {
      list.push_back(operand.absent ? Placed{} : place(operand, layout, flush));
      views.push_back(operand.absent ? nullptr : &list.back().view);
    }
  };
  add(op_case.inputs, placed.inputs, placed.input_views);
  add(op_case.outputs, placed.outputs, placed.output_views);
  placed.args = {placed.input_views.data(), static_cast<int>(placed.input_views.size()), placed.output_views.data(),
                 static_cast<int>(placed.output_views.size()), op_case.attributes.data()};
}

Status run_placed(const OpDef& op, const OpArgs& args, Isa isa, int threads) {
  const FlushDenormals flushing;
  return run_op(op, args, isa, threads);
}

bool same_bits(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(double)) != 0) return false;
  }
  return true;
}

struct Way {
  Isa isa;
  int threads;
  Layout layout;
  GuardedBuffer::Flush flush;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const Isa isa : isas_ascending()) {
    if (!can_run(isa)) continue;
    for (const Layout layout : {Layout::kDense, Layout::kPadded, Layout::kReversed, Layout::kPermuted}) {
      const int threads = layout == Layout::kPadded ? 2 : layout == Layout::kReversed ? 5 : 1;
      ways.push_back({isa, threads, layout, GuardedBuffer::Flush::kEnd});
    }
    ways.push_back({isa, 2, Layout::kDense, GuardedBuffer::Flush::kBegin});
  }
  return ways;
}

std::string name_of_way(const Way& way) {
  return std::string(name_of(way.isa)) + " threads " + std::to_string(way.threads) + " layout " +
         std::to_string(static_cast<int>(way.layout));
}

std::vector<Values> run_one_way(const OpCase& op_case, const Way& way, const std::string& label) {
  PlacedCase placed;
  place_case(op_case, way.layout, way.flush, placed);
  const Status checked = op_case.op->check(placed.args);
  EK_CHECK_MSG(checked.is_ok(), label + ": check: " + checked.message());
  if (!checked.is_ok()) return {};
  const Status ran = run_placed(*op_case.op, placed.args, way.isa, way.threads);
  EK_CHECK_MSG(ran.is_ok(), label + ": run: " + ran.message());
  std::vector<Values> results;
  for (size_t i = 0; i < placed.outputs.size(); ++i) {
    if (op_case.outputs[i].absent) {
      results.push_back({});
      continue;
    }
    EK_CHECK_MSG(canaries_whole(placed.outputs[i]), label + ": wrote beside output " + std::to_string(i));
    results.push_back(read_back(op_case.outputs[i], placed.outputs[i]));
  }
  return results;
}

}  // namespace

std::vector<Values> run_everywhere(const OpCase& op_case, const std::string& label) {
  std::vector<Values> first;
  for (const Way& way : all_ways()) {
    const std::string where = label + " [" + name_of_way(way) + "]";
    std::vector<Values> results = run_one_way(op_case, way, where);
    if (results.empty()) return {};
    if (first.empty()) {
      first = std::move(results);
      continue;
    }
    for (size_t i = 0; i < first.size(); ++i) {
      EK_CHECK_MSG(same_bits(first[i], results[i]), where + ": output " + std::to_string(i) + " differs");
    }
  }
  return first;
}

Status check_of(const OpCase& op_case) {
  PlacedCase placed;
  place_case(op_case, Layout::kDense, GuardedBuffer::Flush::kEnd, placed);
  return op_case.op->check(placed.args);
}

Status run_once(const OpCase& op_case) {
  PlacedCase placed;
  place_case(op_case, Layout::kDense, GuardedBuffer::Flush::kEnd, placed);
  return run_placed(*op_case.op, placed.args, Isa::kScalar, 1);
}

int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  for (const int32_t dim : dims) count *= dim;
  return count;
}

Values random_values(Random& random, int64_t count, double low, double high, bool whole) {
  Values values(static_cast<size_t>(count));
  for (double& value : values) {
    value = whole ? random.range(static_cast<int>(low), static_cast<int>(high))
                  : static_cast<double>(static_cast<float>(low + (high - low) * static_cast<double>(random.unit())));
  }
  return values;
}

void expect_near(const Values& actual, const Values& expected, double relative, double absolute,
                 const std::string& label) {
  EK_CHECK_MSG(actual.size() == expected.size(),
               label + ": " + std::to_string(actual.size()) + " elements, expected " + std::to_string(expected.size()));
  if (actual.size() != expected.size()) return;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    if (actual[i] == expected[i]) continue;  // infinities too
    const bool near = std::fabs(actual[i] - expected[i]) <= absolute + relative * std::fabs(expected[i]);
    EK_CHECK_MSG(near, label + ": element " + std::to_string(i) + " is " + std::to_string(actual[i]) + ", expected " +
                           std::to_string(expected[i]));
    if (!near) return;
  }
}

void for_each_index(const Dims& dims, const std::function<void(const Dims&)>& body) {
  Dims index(dims.size(), 0);
  while (true) {
    body(index);
    size_t axis = dims.size();
    while (axis > 0 && ++index[axis - 1] == dims[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

int64_t place_of(const Dims& dims, const Dims& index) {
  int64_t place = 0;
  for (size_t i = 0; i < dims.size(); ++i) place = place * dims[i] + index[i];
  return place;
}

}  // namespace edgekit::test
