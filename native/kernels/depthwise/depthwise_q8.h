// The kernels of INT8 depthwise convolution: strips of one or two output rows. One manifest (kernels.inc) names them
// all; declarations, dispatch, tests and benchmarks include it.
#ifndef EDGEKIT_KERNELS_DEPTHWISE_DEPTHWISE_Q8_H_
#define EDGEKIT_KERNELS_DEPTHWISE_DEPTHWISE_Q8_H_

#include <cstddef>
#include <cstdint>

#include "kernels/conv_window.h"
#include "kernels/requantize/requantize_q8.h"

namespace edgekit {

inline constexpr int kDepthwiseMostRows = 2;  // output rows of one strip, over all kernels

// Weights, bias and scale of one op; w is [kernel_h * kernel_w, channels].
struct DepthwiseQ8Weights {
  const int8_t* w;
  const int32_t* bias;
  const float* scale;
  int32_t channels;
  int32_t kernel_h, kernel_w;
};

// A block of channels: [base, base + the kernel's block), of which only [first, first + count) are to be written.
struct DepthwiseQ8Block {
  int32_t base;
  int first, count;
  const void* packed;  // its weights, as the kernel packed them
};

// One or two rows of output pixels [first_ox, last_ox), for the blocks [first_block, last_block). Pointers to pixels
// stand at column 0 and channel 0. Memory: pixels of x hold at least the kernel's `narrowest` channels, `zero` as
// many as a pixel and a block. y may equal residual; nothing else may overlap y. Nothing needs an alignment.
struct DepthwiseQ8Strip {
  const uint8_t* const* rows;  // [kernel_h + (out_rows - 1) * stride_h] input rows; null outside of the image
  int64_t x_step;              // bytes from a pixel to the next
  const uint8_t* zero;         // x_zero for every channel
  int32_t w;                   // input pixels of a row
  ConvWindow window;
  const std::byte* packed;  // the weights of block 0
  size_t block_bytes;
  int32_t channels;  // of the tensor
  int32_t first_block, last_block;
  int32_t first_ox, last_ox;
  int out_rows;
  uint8_t* y[kDepthwiseMostRows];
  const uint8_t* residual[kDepthwiseMostRows];  // read only if requantize->add
  int64_t y_step, residual_step;
  const RequantizeQ8* requantize;

  // Blocks of that many channels overlap at the end, so that none is partly empty unless the tensor itself is narrower.
  __attribute__((always_inline)) DepthwiseQ8Block block(int32_t index, int32_t block_channels) const {
    const int32_t begin = index * block_channels;
    const int32_t last = channels - block_channels;
    const int32_t base = last < 0 ? 0 : begin < last ? begin : last;
    const int32_t end = begin + block_channels < channels ? begin + block_channels : channels;
    return {base, begin - base, end - begin, packed + static_cast<size_t>(index) * block_bytes};
  }

  // The pixel of an input row at a column; `zero` where that is outside of the image.
  __attribute__((always_inline)) const uint8_t* pixel(int32_t row, int64_t ix) const {
    const bool inside = rows[row] != nullptr && static_cast<uint64_t>(ix) < static_cast<uint64_t>(w);
    return inside ? rows[row] + ix * x_step : zero;
  }
};

// Packs the weights of channels [first, first + n) of a block; n is the kernel's block, or fewer in a narrow tensor.
using DepthwisePackFn = void (*)(const DepthwiseQ8Weights& weights, int32_t first, int32_t n, void* packed) noexcept;
using DepthwiseStripFn = void (*)(const DepthwiseQ8Strip& strip) noexcept;

struct DepthwiseQ8Kernel {
  const char* name;
  Isa isa;
  Dtype activations;
  int kernel, stride;  // square kernel and stride with dilation 1; 0 for any
  int channels;        // of one block
  int narrowest;       // channels that pixels of x hold at least
  int out_rows;        // of one strip
  double mac_ns;       // rough cost of one multiply-accumulate, to decide on threads
  DepthwiseStripFn strip;
  DepthwisePackFn pack;
  size_t (*packed_bytes)(int32_t kernel_h, int32_t kernel_w);  // of one block; a multiple of 64
};

struct DepthwiseQ8Kernels {
  const DepthwiseQ8Kernel* begin_;
  const DepthwiseQ8Kernel* end_;
  const DepthwiseQ8Kernel* begin() const { return begin_; }
  const DepthwiseQ8Kernel* end() const { return end_; }
};

// Every kernel of this build, whether or not this CPU can run it.
DepthwiseQ8Kernels depthwise_q8_kernels();

// Whether a kernel computes that window.
bool depthwise_q8_suits(const DepthwiseQ8Kernel& kernel, const ConvWindow& window);

// The kernels for that window, index of depthwise_q8_count(): 0 is preferred, those behind it are of its instruction
// set or a lower one, never scalar beside vectors.
const DepthwiseQ8Kernel& select_depthwise_q8(Isa isa, Dtype activations, const ConvWindow& window, int index = 0);
int depthwise_q8_count(Isa isa, Dtype activations, const ConvWindow& window);

#define EK_DEPTHWISE_Q8(name, space, isa, activations, kernel, stride, channels, narrowest, out_rows, mac_ns) \
  namespace space {                                                                                           \
  void name(const DepthwiseQ8Strip& strip) noexcept;                                                          \
  void pack_##name(const DepthwiseQ8Weights& weights, int32_t first, int32_t n, void* packed) noexcept;       \
  size_t packed_bytes_##name(int32_t kernel_h, int32_t kernel_w);                                             \
  }
#include "kernels/depthwise/kernels.inc"
#undef EK_DEPTHWISE_Q8

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_DEPTHWISE_DEPTHWISE_Q8_H_
