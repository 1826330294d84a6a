// Program: a verified program.ekn, shared read-only by all sessions that run it.
#ifndef EDGEKIT_ENGINE_PROGRAM_H_
#define EDGEKIT_ENGINE_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/mapped_file.h"
#include "core/status.h"
#include "core/tensor.h"
#include "engine/program_view.h"
#include "kernels/op.h"

namespace edgekit {

// One op of a plan. Pointers lead into the program's file.
struct PlanOp {
  const OpDef* def;
  const OpRecord* record;
  const int32_t* operands;  // inputs, then outputs; -1: absent
  const uint32_t* attributes;
  std::string_view name;  // of the source layer(s)
};

// An input or output of a plan.
struct PlanValue {
  std::string_view name;
  uint32_t tensor;  // index into Plan::tensors
  uint32_t buffer;  // index into Plan::buffer_bytes
};

// One plan (shape bucket), ready for sessions to copy and bind.
struct Plan {
  std::vector<TensorView> tensors;      // data set for constants only
  std::vector<uint16_t> tensor_buffer;  // buffer of each tensor
  std::vector<uint64_t> tensor_offset;  // bytes inside that buffer
  std::vector<uint64_t> buffer_bytes;
  std::vector<PlanOp> ops;
  std::vector<PlanValue> inputs, outputs;
  uint64_t arena_bytes = 0;

  // Value of that name, or null.
  static const PlanValue* find(const std::vector<PlanValue>& values, std::string_view name);
};

class Program {
 public:
  // Maps the byte range of a file (a member of a package, or a whole .ekn file) and verifies it. isa: the instruction
  // set to stay within, by default the one in force (EDGEKIT_ISA or the best); scalar runs every program.
  static Result<std::shared_ptr<const Program>> open(const std::string& path, uint64_t offset_bytes = 0,
                                                     uint64_t size_bytes = MappedFile::kToEnd,
                                                     std::optional<Isa> isa = std::nullopt);

  // The same from memory, which is copied.
  static Result<std::shared_ptr<const Program>> from_memory(const void* data, uint64_t size_bytes,
                                                            std::optional<Isa> isa = std::nullopt);

  Isa isa() const { return static_cast<Isa>(view_.header->isa); }  // that its weights are packed for
  Isa kernel_isa() const { return kernel_isa_; }                   // whose kernels run it here
  const std::vector<Plan>& plans() const { return plans_; }
  uint64_t size_bytes() const { return view_.size_bytes; }
  uint64_t constants_bytes() const { return view_.header->constants_bytes; }

 private:
  Program() = default;
  Status load(const std::byte* data, uint64_t size_bytes, std::optional<Isa> isa);
  Status copy_and_load(const void* data, uint64_t size_bytes, std::optional<Isa> isa);
  Plan build_plan(const PlanRecord& record) const;
  Status check_ops(const Plan& plan, size_t index) const;
  Status check_same_interface(const Plan& plan, size_t index) const;

  MappedFile file_;  // one of the two holds the bytes
  AlignedBuffer memory_;
  ProgramView view_;
  Isa kernel_isa_ = Isa::kScalar;
  std::vector<Plan> plans_;
};

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_PROGRAM_H_
