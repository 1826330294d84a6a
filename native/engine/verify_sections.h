// First stage of the verifier: the header, the bounds of all sections, and the checksum.
#ifndef EDGEKIT_ENGINE_VERIFY_SECTIONS_H_
#define EDGEKIT_ENGINE_VERIFY_SECTIONS_H_

#include "engine/program_view.h"

namespace edgekit {

// Checks magic, version, limits, alignment, order and bounds of the sections, the CRC, and that the strings are UTF-8.
// data is aligned to kAlignmentBytes and outlives the result. Failures are kInvalidProgram.
Result<ProgramView> verify_sections(const std::byte* data, uint64_t size_bytes);

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_VERIFY_SECTIONS_H_
