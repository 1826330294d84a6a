#include "tests/run_op.h"

#include "tests/q8_memory.h"

namespace edgekit::test {
namespace {

size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Status run_op(const OpDef& op, const OpArgs& args, Isa isa, int threads) {
  GuardedBuffer state(round_up(op.prepare != nullptr ? op.state_bytes(args, isa) : 0));
  if (op.prepare != nullptr) op.prepare(args, isa, state.as<std::byte>());
  GuardedBuffer scratch(round_up(op.scratch_bytes != nullptr ? op.scratch_bytes(args, threads, isa) : 0));
  RunContext context{ThreadPool::process(), threads, scratch.as<std::byte>(), isa, state.as<std::byte>()};
  return op.run(args, context);
}

}  // namespace edgekit::test
