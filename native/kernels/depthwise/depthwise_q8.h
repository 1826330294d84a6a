// The kernels of INT8 depthwise convolution: whole output rows of a block of channels. One manifest (kernels.inc) names
// them all; declarations, dispatch, tests and benchmarks include it.
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

// One or two rows of output pixels, for one block of channels. All pointers stand at the block's first channel.
// Memory: pixels of x and `zero` hold as many channels as the block has, of which only [first, first + count) are
// written to y. y may equal residual; nothing else may overlap y. Nothing needs an alignment.
struct DepthwiseQ8Strip {
  const uint8_t* const* rows;  // [kernel_h + (out_rows - 1) * stride_h]: pixel 0 of the input row, or `zero`
  const int64_t* steps;        // bytes from a pixel to the next in that row; 0 where it is `zero`
  const uint8_t* zero;         // x_zero for every channel of the block
  int32_t w;                   // input pixels of a row
  ConvWindow window;
  const void* packed;  // this block's weights, as the kernel packed them
  int32_t out_w;
  int out_rows;
  uint8_t* y[kDepthwiseMostRows];
  const uint8_t* residual[kDepthwiseMostRows];  // read only if requantize->add
  int64_t y_step, residual_step;
  int first, count;  // channels of the block to write
  const RequantizeQ8* requantize;
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

const DepthwiseQ8Kernel& select_depthwise_q8(Isa isa, Dtype activations, const ConvWindow& window);

#define EK_DEPTHWISE_Q8(name, space, isa, activations, kernel, stride, channels, out_rows, mac_ns)      \
  namespace space {                                                                                     \
  void name(const DepthwiseQ8Strip& strip) noexcept;                                                    \
  void pack_##name(const DepthwiseQ8Weights& weights, int32_t first, int32_t n, void* packed) noexcept; \
  size_t packed_bytes_##name(int32_t kernel_h, int32_t kernel_w);                                       \
  }
#include "kernels/depthwise/kernels.inc"
#undef EK_DEPTHWISE_Q8

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_DEPTHWISE_DEPTHWISE_Q8_H_
