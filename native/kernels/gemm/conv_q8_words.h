// Convolutions as products of 16-bit words: each group's channels of a few lines are widened once, weights when a
// session starts. Pairs of words never saturate, so that no depth group comes twice, and neither windows over the
// border nor panels that are not full cost more than others. For grouped convolutions of few channels, and for
// pointwise ones of little depth whose lists of bytes would be long.
#ifndef EDGEKIT_KERNELS_GEMM_CONV_Q8_WORDS_H_
#define EDGEKIT_KERNELS_GEMM_CONV_Q8_WORDS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/conv_q8_padding.h"
#include "kernels/gemm/conv_q8_plan.h"
#include "kernels/gemm/unpack_words.h"
#include "kernels/op.h"

namespace edgekit {

// The products of u8 activations, widened, and s16 weights. GemmQ8Rows as for bytes, but a depth group is two words of
// A, b holds [depth_groups][16][2] words, and segments, parts and quads mean nothing.
struct WordKernel {
  const char* name;
  Isa isa;
  GemmQ8Fn run;
  // The first `channels` bytes of `pixels` pixels, from_step apart, as words that are to_step words apart.
  void (*widen)(const uint8_t* from, int64_t from_step, int64_t pixels, int64_t channels, uint16_t* to,
                int64_t to_step) noexcept;
};

// The best for `isa`; null: none.
const WordKernel* word_kernel(Isa isa);

// What a session keeps. panels: of a group.
struct ConvQ8Words {
  const WordKernel* kernel;  // null: the convolution is one of bytes
  ConvQ8Padding padding;     // of one group, channels in bytes of words: a multiple of 4
  int64_t panels, depth_groups;
  const int64_t* offsets;  // [depth_groups]
  const int16_t* b;        // [groups][panels][depth_groups][16][2]
  const int32_t* bias;     // [groups][panels][16]
  const float* scale;      // likewise
};

// Memory that the lists take; 0 where the convolution is one of bytes.
size_t conv_q8_word_bytes(const OpArgs& args, Isa isa);

// lists: conv_q8_word_bytes of them, zeroed.
ConvQ8Words make_conv_q8_words(const OpArgs& args, Isa isa, std::byte* lists);

// Scratch of one worker.
size_t conv_q8_word_scratch(const OpArgs& args, Isa isa);

// As run_conv_q8_task.
void run_conv_q8_words(const ConvQ8Task& task, const ConvQ8Words& words, Span rows, Span panels);

#define EK_WORD_KERNEL(name, widen, space, isa)                                       \
  namespace space {                                                                   \
  void name(const GemmQ8Rows& rows) noexcept;                                         \
  void widen(const uint8_t*, int64_t, int64_t, int64_t, uint16_t*, int64_t) noexcept; \
  }
#include "kernels/gemm/word_kernels.inc"
#undef EK_WORD_KERNEL

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_GEMM_CONV_Q8_WORDS_H_
