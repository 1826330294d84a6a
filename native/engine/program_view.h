// ProgramView: the tables of a program.ekn as they lie in memory, once their bounds have been checked.
#ifndef EDGEKIT_ENGINE_PROGRAM_VIEW_H_
#define EDGEKIT_ENGINE_PROGRAM_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "program_schema.h"

namespace edgekit {

struct ProgramView {
  const std::byte* data = nullptr;
  uint64_t size_bytes = 0;
  const HeaderRecord* header = nullptr;
  const PlanRecord* plans = nullptr;
  const BufferRecord* buffers = nullptr;
  const TensorRecord* tensors = nullptr;
  const OpRecord* ops = nullptr;
  const int32_t* operands = nullptr;
  const uint32_t* attributes = nullptr;
  const char* strings = nullptr;
  const std::byte* constants = nullptr;

  // A name that the verifier has accepted.
  std::string_view name(uint32_t offset, uint32_t bytes) const { return {strings + offset, bytes}; }
};

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_PROGRAM_VIEW_H_
