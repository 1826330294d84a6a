#include "engine/program.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/cpu_features.h"
#include "engine/op_registry.h"
#include "engine/verify_plan.h"
#include "engine/verify_sections.h"

namespace edgekit {
namespace {

TensorView make_view(const TensorRecord& record, const std::byte* constants) {
  TensorView view;
  view.dtype = static_cast<Dtype>(record.dtype);
  view.rank = record.rank;
  std::copy(std::begin(record.dims), std::end(record.dims), view.dims);
  std::copy(std::begin(record.strides), std::end(record.strides), view.strides);
  view.zero_point = record.zero_point;
  view.scale = record.scale;
  const bool constant = record.buffer == static_cast<int>(BufferKind::kConstants);  // always buffer 1
  view.data = constant ? const_cast<std::byte*>(constants + record.offset_bytes) : nullptr;
  return view;
}

bool same_value(const Plan& a, const PlanValue& value_a, const Plan& b, const PlanValue& value_b) {
  const TensorView& x = a.tensors[value_a.tensor];
  const TensorView& y = b.tensors[value_b.tensor];
  return value_a.name == value_b.name && x.dtype == y.dtype && x.rank == y.rank;
}

bool same_values(const Plan& a, const std::vector<PlanValue>& values_a, const Plan& b,
                 const std::vector<PlanValue>& values_b) {
  return std::equal(values_a.begin(), values_a.end(), values_b.begin(), values_b.end(),
                    [&](const PlanValue& x, const PlanValue& y) { return same_value(a, x, b, y); });
}

Status with_path(const std::string& path, const Status& status) {
  return {status.code(), path + ": " + status.message()};
}

}  // namespace

const PlanValue* Plan::find(const std::vector<PlanValue>& values, std::string_view name) {
  for (const PlanValue& value : values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

Result<std::shared_ptr<const Program>> Program::open(const std::string& path, uint64_t offset_bytes,
                                                     uint64_t size_bytes, std::optional<Isa> isa) {
  Result<MappedFile> file = MappedFile::open(path, offset_bytes, size_bytes);
  if (!file.is_ok()) return file.status();
  std::shared_ptr<Program> program(new Program);
  program->file_ = std::move(file.value());
  const std::byte* data = program->file_.data();
  const uint64_t bytes = program->file_.size_bytes();
  // Members of our packages are aligned; one that another zip tool has moved is copied to where it is.
  const bool aligned = reinterpret_cast<uintptr_t>(data) % kAlignmentBytes == 0;
  const Status status = aligned ? program->load(data, bytes, isa) : program->copy_and_load(data, bytes, isa);
  if (!status.is_ok()) return with_path(path, status);
  return std::shared_ptr<const Program>(std::move(program));
}

Result<std::shared_ptr<const Program>> Program::from_memory(const void* data, uint64_t size_bytes,
                                                            std::optional<Isa> isa) {
  std::shared_ptr<Program> program(new Program);
  EK_RETURN_IF_ERROR(program->copy_and_load(data, size_bytes, isa));
  return std::shared_ptr<const Program>(std::move(program));
}

Status Program::copy_and_load(const void* data, uint64_t size_bytes, std::optional<Isa> isa) {
  Result<AlignedBuffer> memory = AlignedBuffer::allocate(size_bytes, "program");
  if (!memory.is_ok()) return memory.status();
  memory_ = std::move(memory.value());
  if (size_bytes > 0) std::memcpy(memory_.data(), data, size_bytes);
  file_ = MappedFile();
  return load(memory_.data(), size_bytes, isa);
}

Status Program::load(const std::byte* data, uint64_t size_bytes, std::optional<Isa> isa) {
  Result<ProgramView> view = verify_sections(data, size_bytes);
  if (!view.is_ok()) return view.status();
  view_ = view.value();
  Result<Isa> allowed = isa.has_value() ? Result<Isa>(*isa) : active_isa();
  if (!allowed.is_ok()) return allowed.status();
  EK_RETURN_IF_ERROR(check_isa_supported(allowed.value()));
  Result<Isa> kernels = edgekit::kernel_isa(this->isa(), allowed.value());
  if (!kernels.is_ok()) return {kernels.status().code(), "program: " + kernels.status().message()};
  kernel_isa_ = kernels.value();
  EK_RETURN_IF_ERROR(verify_plan_ranges(view_));
  for (uint32_t i = 0; i < view_.header->plan_count; ++i) {
    EK_RETURN_IF_ERROR(verify_plan(view_, i));
    plans_.push_back(build_plan(view_.plans[i]));
    EK_RETURN_IF_ERROR(check_same_interface(plans_.back(), i));
    EK_RETURN_IF_ERROR(check_ops(plans_.back(), i));
  }
  return Status::ok();
}

Plan Program::build_plan(const PlanRecord& record) const {
  Plan plan;
  plan.arena_bytes = record.arena_bytes;
  for (uint32_t i = 0; i < record.buffer_count; ++i) {
    plan.buffer_bytes.push_back(view_.buffers[record.first_buffer + i].size_bytes);
  }
  plan.tensors.reserve(record.tensor_count);
  plan.tensor_buffer.reserve(record.tensor_count);
  plan.tensor_offset.reserve(record.tensor_count);
  const TensorRecord* tensors = view_.tensors + record.first_tensor;
  for (uint32_t i = 0; i < record.tensor_count; ++i) {
    plan.tensors.push_back(make_view(tensors[i], view_.constants));
    plan.tensor_buffer.push_back(tensors[i].buffer);
    plan.tensor_offset.push_back(tensors[i].offset_bytes);
  }
  plan.ops.reserve(record.op_count);
  for (uint32_t i = 0; i < record.op_count; ++i) {
    const OpRecord& op = view_.ops[record.first_op + i];
    plan.ops.push_back({find_op(op.opcode), &op, view_.operands + op.first_operand,
                        view_.attributes + op.first_attribute, view_.name(op.name_offset, op.name_bytes)});
  }
  const auto add_values = [&](uint32_t first, uint32_t count, std::vector<PlanValue>* values) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t index = static_cast<uint32_t>(view_.operands[first + i]);
      const TensorRecord& tensor = tensors[index];
      values->push_back({view_.name(tensor.name_offset, tensor.name_bytes), index, tensor.buffer});
    }
  };
  add_values(record.first_input, record.input_count, &plan.inputs);
  add_values(record.first_output, record.output_count, &plan.outputs);
  return plan;
}

// All plans take and give the same names, dtypes and ranks; only dims differ.
Status Program::check_same_interface(const Plan& plan, size_t index) const {
  const Plan& first = plans_.front();
  if (same_values(first, first.inputs, plan, plan.inputs) && same_values(first, first.outputs, plan, plan.outputs)) {
    return Status::ok();
  }
  return {StatusCode::kInvalidProgram,
          "program: plan " + std::to_string(index) + ": inputs or outputs differ from plan 0's"};
}

// What only the op itself can judge.
Status Program::check_ops(const Plan& plan, size_t index) const {
  const TensorView* operands[kLimitOperandsPerOp];
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const PlanOp& op = plan.ops[i];
    const std::string where = "program: plan " + std::to_string(index) + ": op " + std::to_string(i) + " ";
    if (op.def == nullptr) {
      return {StatusCode::kInvalidProgram,
              where + name_of(static_cast<Opcode>(op.record->opcode)) + ": is not in this build of edgekit"};
    }
    const int count = op.record->input_count + op.record->output_count;
    for (int k = 0; k < count; ++k) operands[k] = op.operands[k] < 0 ? nullptr : &plan.tensors[op.operands[k]];
    const OpArgs args{operands, op.record->input_count, operands + op.record->input_count, op.record->output_count,
                      op.attributes};
    if (Status status = op.def->check(args); !status.is_ok()) {
      return {StatusCode::kInvalidProgram, where + "(" + op.def->name + "): " + status.message()};
    }
  }
  return Status::ok();
}

}  // namespace edgekit
