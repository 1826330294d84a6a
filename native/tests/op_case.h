// OpCase: one op with its operands by value, run through its OpDef in every way that must not matter: each instruction
// set, several thread counts, dense, padded, reversed and permuted memory, flush against unreadable pages.
#ifndef EDGEKIT_TESTS_OP_CASE_H_
#define EDGEKIT_TESTS_OP_CASE_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/op.h"
#include "tests/q8_memory.h"

namespace edgekit::test {

using Dims = std::vector<int32_t>;
using Values = std::vector<double>;  // the elements of a tensor in row-major order

// An operand. Inputs have values, as many as dims say (an axis in broadcast_axes counts as 1).
struct Operand {
  Dtype dtype = Dtype::kF32;
  Dims dims;
  Values values = {};
  uint32_t broadcast_axes = 0;  // stride 0 there
  bool fixed = false;           // dense whatever the layout: weights and tables
  bool image = false;           // keeps stride 1 on the last axis
  bool absent = false;
};

struct OpCase {
  const OpDef* op;
  std::vector<Operand> inputs, outputs;
  std::vector<uint32_t> attributes = {};

  template <typename Attrs>
  OpCase& with(const Attrs& attrs) {
    attributes.resize((sizeof(attrs) + 3) / 4);
    std::memcpy(attributes.data(), &attrs, sizeof(attrs));
    return *this;
  }
};

// Runs the case in every way; checks that each gives the same bits and writes nothing beside its outputs. Returns the
// outputs of the scalar tables; empty when the op refused the case, which is a failure too.
std::vector<Values> run_everywhere(const OpCase& op_case, const std::string& label);

// What check() says to the case as dense operands.
Status check_of(const OpCase& op_case);
// What run() says, scalar, dense; the outputs are dropped.
Status run_once(const OpCase& op_case);

int64_t element_count(const Dims& dims);

// Repeatable values: uniform in [low, high], rounded to integers when whole.
Values random_values(Random& random, int64_t count, double low, double high, bool whole = false);

// |actual - expected| <= absolute + relative * |expected| everywhere; both NaN is equal.
void expect_near(const Values& actual, const Values& expected, double relative, double absolute,
                 const std::string& label);

// Calls body(index) for every index of dims in row-major order.
void for_each_index(const Dims& dims, const std::function<void(const Dims&)>& body);
// Row-major place of an index.
int64_t place_of(const Dims& dims, const Dims& index);

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_OP_CASE_H_
