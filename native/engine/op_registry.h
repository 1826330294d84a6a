// The table of all ops, built from kernels/ops.inc.
#ifndef EDGEKIT_ENGINE_OP_REGISTRY_H_
#define EDGEKIT_ENGINE_OP_REGISTRY_H_

#include "kernels/op.h"

namespace edgekit {

// The op of that code as it stands in a file, or null.
const OpDef* find_op(uint16_t opcode);

// Its signature in program_schema.toml, or null.
const OpSignature* find_signature(uint16_t opcode);

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_OP_REGISTRY_H_
