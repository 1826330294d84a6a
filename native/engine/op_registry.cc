#include "engine/op_registry.h"

#include <array>

namespace edgekit {
namespace {

constexpr const OpDef* kOps[] = {
#define EK_OP(symbol) &symbol,
#include "kernels/ops.inc"
#undef EK_OP
    nullptr,
};

struct Tables {
  std::array<const OpDef*, kOpcodeCount> ops{};
  std::array<const OpSignature*, kOpcodeCount> signatures{};

  Tables() {
    for (const OpDef* op : kOps) {
      if (op != nullptr) ops[static_cast<size_t>(op->opcode)] = op;
    }
    for (const OpSignature& signature : kOpSignatures) signatures[static_cast<size_t>(signature.opcode)] = &signature;
  }
};

const Tables& tables() {
  static const Tables all;
  return all;
}

}  // namespace

const OpDef* find_op(uint16_t opcode) { return opcode < kOpcodeCount ? tables().ops[opcode] : nullptr; }

const OpSignature* find_signature(uint16_t opcode) {
  return opcode < kOpcodeCount ? tables().signatures[opcode] : nullptr;
}

}  // namespace edgekit
