// Second stage of the verifier: ranges, buffers, tensors and ops of one plan.
#ifndef EDGEKIT_ENGINE_VERIFY_PLAN_H_
#define EDGEKIT_ENGINE_VERIFY_PLAN_H_

#include "engine/program_view.h"

namespace edgekit {

// Checks that the plans' ranges of buffers, tensors and ops follow one another and cover the tables.
Status verify_plan_ranges(const ProgramView& view);

// Checks everything about plan `index` that does not depend on what an op means: buffers, every view's extent, names,
// inputs and outputs, operand and attribute counts against kOpSignatures, finite floats, and where ops may write.
// verify_plan_ranges() has passed. Failures are kInvalidProgram.
Status verify_plan(const ProgramView& view, uint32_t index);

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_VERIFY_PLAN_H_
