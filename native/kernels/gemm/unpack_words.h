// Undoes the packing of weights for products of words.
#ifndef EDGEKIT_KERNELS_GEMM_UNPACK_WORDS_H_
#define EDGEKIT_KERNELS_GEMM_UNPACK_WORDS_H_

#include <cstdint>

#include "kernels/gemm/conv_q8_source.h"
#include "kernels/op.h"

namespace edgekit {

inline constexpr int kWordColumns = 16;  // of a panel

// Weights of all panels, and their bias; panels: of a group.
struct WordWeights {
  int16_t* b;     // [groups][panels][depth_groups][16][2]
  int32_t* bias;  // [groups][panels][16]
  int64_t panels, depth_groups;
};

// Adds conv_q8's weights to `to`, which is zero, and to its bias what complemented bytes make it lack. False: a sum of
// rows does not fit a word, which no converter writes.
bool unpack_words(const OpArgs& args, const ConvQ8Source& source, const WordWeights& to);

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_UNPACK_WORDS_H_
