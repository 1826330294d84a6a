// One INT8 convolution as a test: operands in guarded memory, the op run on an instruction set, and an independent
// plain loop to compare with. Serves conv_q8, depthwise_q8 and conv_q8_winograd.
#ifndef EDGEKIT_TESTS_Q8_CONV_CASE_H_
#define EDGEKIT_TESTS_Q8_CONV_CASE_H_

#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "tests/case_grid.h"
#include "tests/q8_memory.h"

namespace edgekit::test {

// Extremes: only the least and greatest of each dtype, zero points too. Far: all of x at one end and all weights at one
// end, -128 both on ARM.
enum class Values { kRandom, kExtremes, kFar };
enum class Scales { kUsual, kAboveOne, kTies };  // ties: 0.5, so that every odd sum is one

struct ConvCase {
  bool depthwise = false;
  bool winograd = false;  // 3x3, stride 1, one group; u8
  int n = 1, h = 5, w = 5, channels = 3, out_channels = 4, groups = 1;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int pad_top = 0, pad_left = 0;
  int out_h = 0, out_w = 0;  // 0: as many as fit with the same pad on the other side
  int x_gap = 0, y_gap = 0;  // bytes between the channels of neighbouring pixels
  int line_gap = 0;          // bytes between the lines of x, y and the residual, besides
  int nr = 16, kg = 2;       // packing; the scalar kernels take any
  bool saturating_pairs = false;
  bool is_signed = false;
  bool lut = false, add = false, clamp = false;
  bool zero_padding = false;  // x's zero point is the byte 0: taps outside of the image add nothing
  Values values = Values::kRandom;
  Scales scales = Scales::kUsual;
  int threads = 1;
  GuardedBuffer::Flush flush = GuardedBuffer::Flush::kEnd;
  uint64_t seed = 1;

  std::string text() const;
};

// What a case of a grid has besides its shape, so that all of it meets all shapes sooner or later.
void vary(const GridCase& grid, ConvCase& c);

// How many rows of weights the case's list has in each form.
std::vector<int> rows_by_form(const ConvCase& c);

// Whether the case's taps outside the image are skipped.
bool skips_taps(const ConvCase& c, Isa isa);

// Runs the case with the kernels of `isa`, by default and in another of the op's ways, and compares with the plain
// loop. Records failures by EK_CHECK.
void check_conv_case(const ConvCase& c, Isa isa);

// Calls body(c) on the case with each choice of a table, an addition and a clamp, and a seed of its own each time.
template <typename Body>
void for_each_fusion(ConvCase c, Body&& body) {
  for (int choice = 0; choice < 8; ++choice, ++c.seed) {
    c.lut = choice & 1;
    c.add = choice & 2;
    c.clamp = choice & 4;
    body(c);
  }
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_Q8_CONV_CASE_H_
