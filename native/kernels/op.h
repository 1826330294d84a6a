// OpDef: what an operator gives to the engine. Each kernel family defines its ops in <family>/<op>_op.cc and names
// them in kernels/ops.inc; the engine knows nothing else about them.
#ifndef EDGEKIT_KERNELS_OP_H_
#define EDGEKIT_KERNELS_OP_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/status.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace edgekit {

// Operands of one op. Absent optional operands are null. attributes points at the words of the op's attribute struct.
struct OpArgs {
  const TensorView* const* inputs;
  int input_count;
  const TensorView* const* outputs;
  int output_count;
  const void* attributes;
  int way = 0;  // which of the op's ways to take (OpDef::ways)

  template <typename Attrs>
  const Attrs& attrs() const {
    return *static_cast<const Attrs*>(attributes);
  }
  const TensorView& in(int i) const { return *inputs[i]; }
  const TensorView& out(int i) const { return *outputs[i]; }
};

// What an op may use while it runs.
struct RunContext {
  ThreadPool& pool;
  int threads;                       // at most this many
  std::byte* scratch;                // 64-byte aligned, as large as scratch_bytes() asked for
  Isa isa;                           // whose kernels to use: the program's, or scalar when EDGEKIT_ISA forces it
  const std::byte* state = nullptr;  // what prepare() has made of this op
  int tasks = 0;                     // cut the work into as many, at most `threads`; 0: by the cost of the work
};

struct OpDef {
  Opcode opcode;
  const char* name;

  // Called once at load, before anything runs, on hostile data too: checks ranks, dims, dtypes, strides, attribute
  // values and the sizes of constants against each other with overflow-safe arithmetic. The engine has already checked
  // operand counts, that every element of every view lies inside its buffer, that no view has more than INT32_MAX
  // elements, that outputs lie in the arena or an output buffer and do not overlap themselves, and that float
  // attributes and scales are finite. data is null except for constants, whose values may be read here: a table that
  // must be trustworthy at run time (indices, look-up tables) is refused unless its data is there now.
  Status (*check)(const OpArgs& args);

  // Bytes of scratch one call needs with that many threads; null: none. Only called after check() passed.
  size_t (*scratch_bytes)(const OpArgs& args, int threads, Isa isa);

  // Runs. Must not allocate. Returns kRuntime only for data-dependent faults (an index out of range).
  Status (*run)(const OpArgs& args, RunContext& context);

  // Bytes of state the op keeps from one run to the next; null: none. Only called after check() passed.
  size_t (*state_bytes)(const OpArgs& args, Isa isa) = nullptr;

  // Fills the state, zeroed and 64-byte aligned, once for each session: what depends on nothing but constants,
  // attributes and shapes, such as packed weights and tables. The data of all other operands means nothing yet, and
  // later runs may bind it elsewhere. Constants that are read here must have been refused by check() unless their data
  // was there (expect_constant).
  void (*prepare)(const OpArgs& args, Isa isa, std::byte* state) = nullptr;

  // Name of the kernel that run() uses, as its kernels.inc has it, with what else sets the way apart from way 0. Ways
  // of an op have different names. Null: portable code, without kernels of its own.
  std::string (*kernel)(const OpArgs& args, Isa isa) = nullptr;

  // In how many ways the op can run with that many threads; null: one. They differ in time and in what they need of
  // scratch and state, never in results; way 0 is what suits most CPUs.
  int (*ways)(const OpArgs& args, int threads, Isa isa) = nullptr;
};

// Every op is declared here, so that its definition in <op>_op.cc, `const OpDef kXOp = {...};`, has external linkage.
#define EK_OP(symbol) extern const OpDef symbol;
#include "kernels/ops.inc"
#undef EK_OP

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_OP_H_
