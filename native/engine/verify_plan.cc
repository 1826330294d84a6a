#include "engine/verify_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "engine/op_registry.h"
#include "engine/verify_tensor.h"

namespace edgekit {
namespace {

Status invalid(const std::string& message) { return {StatusCode::kInvalidProgram, "program: " + message}; }

bool in_range(uint64_t first, uint64_t count, uint64_t total) { return first <= total && count <= total - first; }

template <size_t N>
bool all_zero(const uint32_t (&words)[N]) {
  return std::all_of(words, words + N, [](uint32_t word) { return word == 0; });
}

// Verifies one plan. Tensor indices count from the plan's first tensor.
class PlanVerifier {
 public:
  PlanVerifier(const ProgramView& view, uint32_t index)
      : view_(view),
        plan_(view.plans[index]),
        buffers_(view.buffers + plan_.first_buffer),
        tensors_(view.tensors + plan_.first_tensor),
        where_("plan " + std::to_string(index)),
        strict_(view.header->minor <= kFormatMinor),
        written_(plan_.buffer_count, false) {}

  Status verify() {
    if (strict_ && !all_zero(plan_.reserved)) return fail("reserved field is not 0");
    EK_RETURN_IF_ERROR(check_buffers());
    for (uint32_t i = 0; i < plan_.tensor_count; ++i) EK_RETURN_IF_ERROR(check_tensor(i));
    EK_RETURN_IF_ERROR(check_values("input", plan_.first_input, plan_.input_count, BufferKind::kInput));
    EK_RETURN_IF_ERROR(check_values("output", plan_.first_output, plan_.output_count, BufferKind::kOutput));
    for (uint32_t i = 0; i < plan_.op_count; ++i) EK_RETURN_IF_ERROR(check_op(i));
    return check_outputs_written();
  }

 private:
  Status fail(const std::string& message) const { return invalid(where_ + ": " + message); }

  BufferKind kind_of(uint32_t buffer) const { return static_cast<BufferKind>(buffers_[buffer].kind); }

  Status check_buffers() const {
    if (plan_.buffer_count < 2 || kind_of(0) != BufferKind::kArena || kind_of(1) != BufferKind::kConstants) {
      return fail("buffers 0 and 1 are not arena and constants");
    }
    if (plan_.arena_bytes > kLimitArenaBytes || buffers_[0].size_bytes != plan_.arena_bytes) {
      return fail("arena size is wrong (got " + std::to_string(plan_.arena_bytes) + " bytes, limit " +
                  std::to_string(kLimitArenaBytes) + ")");
    }
    if (buffers_[1].size_bytes != view_.header->constants_bytes) return fail("constants buffer has a wrong size");
    for (uint32_t i = 0; i < plan_.buffer_count; ++i) {
      const bool bound = kind_of(i) == BufferKind::kInput || kind_of(i) == BufferKind::kOutput;
      if ((i >= 2) != bound) return fail("buffer " + std::to_string(i) + " has a wrong kind");
      if (bound && buffers_[i].size_bytes > kLimitArenaBytes)
        return fail("buffer " + std::to_string(i) + " is too large");
      if (strict_ && buffers_[i].reserved != 0) return fail("reserved field is not 0");
    }
    return Status::ok();
  }

  // Kernels may read kAlignmentBytes past an operand: the arena has as many more; constants must end with as many.
  uint64_t usable_bytes(uint32_t buffer) const {
    const uint64_t bytes = buffers_[buffer].size_bytes;
    if (kind_of(buffer) != BufferKind::kConstants) return bytes;
    return bytes - std::min<uint64_t>(bytes, kAlignmentBytes);
  }

  // A name is a range of the (well-formed) strings that cuts no character in two.
  bool is_name(uint32_t offset, uint32_t bytes) const {
    const uint64_t total = view_.header->strings_bytes;
    if (!in_range(offset, bytes, total)) return false;
    const auto continues = [&](uint64_t at) { return at < total && (view_.strings[at] & 0xc0) == 0x80; };
    return !continues(offset) && !continues(uint64_t{offset} + bytes);
  }

  Status check_tensor(uint32_t index) const {
    const TensorRecord& tensor = tensors_[index];
    const std::string_view problem = [&]() -> std::string_view {
      if (!is_name(tensor.name_offset, tensor.name_bytes)) return "name is out of bounds";
      if (tensor.buffer >= plan_.buffer_count) return "buffer does not exist";
      return tensor_problem(tensor, usable_bytes(tensor.buffer), strict_);
    }();
    if (problem.empty()) return Status::ok();
    return fail("tensor " + std::to_string(index) + ": " + std::string(problem));
  }

  // Inputs or outputs of the plan: named, dense, each the whole of a buffer of its own, and no buffer is left over.
  Status check_values(const char* side, uint32_t first, uint32_t count, BufferKind kind) const {
    if (!in_range(first, count, view_.header->operand_count)) return fail(std::string(side) + "s are out of bounds");
    std::set<std::string_view> names;
    std::set<uint32_t> used;
    for (uint32_t i = 0; i < count; ++i) {
      const int64_t index = view_.operands[first + i];
      const std::string what = std::string(side) + " " + std::to_string(i) + ": ";
      if (index < 0 || index >= plan_.tensor_count) return fail(what + "tensor does not exist");
      const TensorRecord& tensor = tensors_[index];
      if (kind_of(tensor.buffer) != kind) return fail(what + "is not in an " + side + " buffer");
      if (!fills_buffer(tensor, buffers_[tensor.buffer].size_bytes))
        return fail(what + "is not the whole of its buffer");
      if (!used.insert(tensor.buffer).second) return fail(what + "shares its buffer with another");
      const std::string_view name = view_.name(tensor.name_offset, tensor.name_bytes);
      if (name.empty() || !names.insert(name).second) return fail(what + "name is empty or not unique");
    }
    const auto buffers = std::count_if(buffers_, buffers_ + plan_.buffer_count,
                                       [&](const BufferRecord& b) { return static_cast<BufferKind>(b.kind) == kind; });
    if (static_cast<size_t>(buffers) != used.size()) return fail(std::string("a buffer is no ") + side);
    return Status::ok();
  }

  Status check_op(uint32_t index) {
    const OpRecord& op = view_.ops[plan_.first_op + index];
    const OpSignature* signature = find_signature(op.opcode);
    const auto fail_op = [&](const std::string& message) {
      return fail("op " + std::to_string(index) + ": " + message);
    };
    if (signature == nullptr) return fail_op("unknown opcode " + std::to_string(op.opcode) + "; update edgekit");
    if (strict_ && !all_zero(op.reserved)) return fail_op("reserved field is not 0");
    if (!is_name(op.name_offset, op.name_bytes)) return fail_op("name is out of bounds");
    if (op.input_count < signature->min_inputs || op.input_count > signature->max_inputs ||
        op.output_count < signature->min_outputs || op.output_count > signature->max_outputs ||
        op.input_count + op.output_count > static_cast<int>(kLimitOperandsPerOp)) {
      return fail_op("wrong number of operands");
    }
    if (!in_range(op.first_operand, op.input_count + op.output_count, view_.header->operand_count)) {
      return fail_op("operands are out of bounds");
    }
    if (op.attribute_count != static_cast<uint32_t>(signature->attribute_words) ||
        !in_range(op.first_attribute, op.attribute_count, view_.header->attribute_word_count)) {
      return fail_op("attributes are out of bounds");
    }
    const std::string_view problem = op_problem(op, *signature);
    return problem.empty() ? Status::ok() : fail_op(std::string(problem));
  }

  std::string_view op_problem(const OpRecord& op, const OpSignature& signature) {
    for (uint32_t i = 0; i < op.attribute_count; ++i) {
      float value;
      std::memcpy(&value, view_.attributes + op.first_attribute + i, sizeof(value));
      if ((signature.float_attributes >> i & 1) && !std::isfinite(value)) return "a float attribute is not finite";
    }
    const int32_t* operands = view_.operands + op.first_operand;
    for (int i = 0; i < op.input_count; ++i) {
      if (operands[i] == -1 && (signature.optional_inputs >> i & 1)) continue;
      if (operands[i] < 0 || static_cast<uint32_t>(operands[i]) >= plan_.tensor_count) return "an input does not exist";
    }
    for (int i = 0; i < op.output_count; ++i) {
      const int32_t operand = operands[op.input_count + i];
      if (operand == -1 && (signature.optional_outputs >> i & 1)) continue;
      if (operand < 0 || static_cast<uint32_t>(operand) >= plan_.tensor_count) return "an output does not exist";
      const TensorRecord& tensor = tensors_[operand];
      const BufferKind kind = kind_of(tensor.buffer);
      if (kind != BufferKind::kArena && kind != BufferKind::kOutput) return "writes to constants or to an input";
      if (overlaps_itself(tensor)) return "an output overlaps itself";
      written_[tensor.buffer] = true;
    }
    return {};
  }

  // An output that no op writes would show the caller whatever its memory held before.
  Status check_outputs_written() const {
    for (uint32_t i = 2; i < plan_.buffer_count; ++i) {
      if (kind_of(i) == BufferKind::kOutput && !written_[i])
        return fail("no op writes output buffer " + std::to_string(i));
    }
    return Status::ok();
  }

  const ProgramView& view_;
  const PlanRecord& plan_;
  const BufferRecord* buffers_;
  const TensorRecord* tensors_;
  const std::string where_;
  const bool strict_;  // reserved fields mean nothing yet in this minor version
  std::vector<bool> written_;
};

}  // namespace

Status verify_plan_ranges(const ProgramView& view) {
  const HeaderRecord& header = *view.header;
  if (header.plan_count == 0) return invalid("has no plan");
  uint64_t buffers = 0, tensors = 0, ops = 0;
  for (uint32_t i = 0; i < header.plan_count; ++i) {
    const PlanRecord& plan = view.plans[i];
    if (plan.first_buffer != buffers || plan.first_tensor != tensors || plan.first_op != ops) {
      return invalid("plan " + std::to_string(i) + ": does not begin where the one before ends");
    }
    buffers += plan.buffer_count;
    tensors += plan.tensor_count;
    ops += plan.op_count;
    if (buffers > header.buffer_count || tensors > header.tensor_count || ops > header.op_count) {
      return invalid("plan " + std::to_string(i) + ": is out of bounds");
    }
  }
  if (buffers != header.buffer_count || tensors != header.tensor_count || ops != header.op_count) {
    return invalid("some records belong to no plan");
  }
  return Status::ok();
}

Status verify_plan(const ProgramView& view, uint32_t index) { return PlanVerifier(view, index).verify(); }

}  // namespace edgekit
