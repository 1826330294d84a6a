// Runs one op as the engine does, its state and scratch in memory of their own.
#ifndef EDGEKIT_TESTS_RUN_OP_H_
#define EDGEKIT_TESTS_RUN_OP_H_

#include "kernels/op.h"

namespace edgekit::test {

// check() has to have passed. State and scratch end at unreadable pages.
Status run_op(const OpDef& op, const OpArgs& args, Isa isa, int threads);

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_RUN_OP_H_
