// What the verifier asks of a single tensor record.
#ifndef EDGEKIT_ENGINE_VERIFY_TENSOR_H_
#define EDGEKIT_ENGINE_VERIFY_TENSOR_H_

#include <string_view>

#include "program_schema.h"

namespace edgekit {

// Empty when dtype, rank, dims, strides, quantization and extent are sound and every element lies inside a buffer of
// that many bytes; otherwise what is wrong. strict: reserved fields must be 0.
std::string_view tensor_problem(const TensorRecord& tensor, uint64_t buffer_bytes, bool strict);

// Whether a sound tensor starts its buffer, is dense and has exactly that many bytes.
bool fills_buffer(const TensorRecord& tensor, uint64_t buffer_bytes);

// Whether two elements of a sound tensor may share memory. Views of a dense tensor by slicing, stepping, reversing and
// transposing never do; the test is exact for those and may refuse other, contrived strides.
bool overlaps_itself(const TensorRecord& tensor);

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_VERIFY_TENSOR_H_
