// depthwise_q8 on every instruction set of this build that this CPU runs, against a plain loop over the definition.
#include <vector>

#include "tests/check.h"
#include "tests/q8_conv_case.h"
#include "tests/q8_isa.h"

namespace edgekit::test {
namespace {

void check_all(ConvCase c) {
  c.depthwise = true;
  for (const Packing& packing : runnable_packings()) {
    c.is_signed = packing.is_signed;
    check_conv_case(c, packing.isa);
  }
}

ConvCase window(int kernel, int stride, int channels) {
  ConvCase c;
  c.kernel_h = c.kernel_w = kernel;
  c.stride_h = c.stride_w = stride;
  c.pad_top = c.pad_left = kernel / 2;
  c.channels = channels;
  return c;
}

EK_TEST(every_channel_count) {
  for_each_case(241, [](GridCase& grid) {
    const int kernels[] = {2, 3, 5, 7};
    const int channels = grid.in(1, 130), stride = grid.in(1, 2), kernel = kernels[grid.in(0, 3)];
    ConvCase c = window(kernel, stride, channels);
    c.w = grid.in(1, 9);
    c.pad_left = grid.in(0, 4);
    c.pad_top = grid.any(5, 1);
    c.h = 1 + grid.any(9, 2);
    vary(grid, c);
    if (grid.is_past_the_end()) return false;
    check_all(c);
    return true;
  });
}

// The windows with kernels of their own, with channels around every block and widths down to less than the window.
EK_TEST(square_windows) {
  uint64_t seed = 1;
  for (const int kernel : {3, 5, 7}) {
    for (const int stride : {1, 2}) {
      for (const int channels : {1, 3, 8, 15, 16, 17, 24, 31, 32, 33, 40, 47, 63, 64, 65, 72, 100, 130}) {
        for (const int size : {1, 2, 3, 4, 5, 8, 13}) {
          ConvCase c = window(kernel, stride, channels);
          c.h = 1 + static_cast<int>(seed % 7);
          c.w = size;
          c.x_gap = seed % 3 == 0 ? 5 : 0;
          c.y_gap = seed % 4 == 0 ? 3 : 0;
          c.flush = seed % 2 ? GuardedBuffer::Flush::kEnd : GuardedBuffer::Flush::kBegin;
          c.seed = seed++;
          check_all(c);
        }
      }
    }
  }
}

// Rows longer than what kernels keep on their way, and more channels than they take at once.
EK_TEST(wide_images) {
  uint64_t seed = 1;
  for (const int kernel : {3, 5, 7}) {
    for (const int stride : {1, 2}) {
      for (const int w : {31, 64, 75, 140}) {
        for (const int pad : {0, 1, 4}) {
          ConvCase c = window(kernel, stride, w == 64 ? 300 : 20);
          c.h = kernel + static_cast<int>(seed % 4);
          c.w = w;
          c.pad_left = pad;
          c.add = seed % 3 == 0;
          c.threads = static_cast<int>(seed % 2) + 1;
          c.seed = seed++;
          check_all(c);
        }
      }
    }
  }
}

EK_TEST(other_windows) {
  struct Window {
    int kernel_h, kernel_w, stride_h, stride_w, dilation, pad_top, pad_left;
  };
  const Window windows[] = {{7, 7, 1, 1, 1, 3, 3},   {3, 3, 1, 1, 2, 2, 2},  {1, 3, 1, 1, 1, 0, 1},
                            {3, 1, 2, 1, 1, 1, 0},   {2, 2, 2, 2, 1, 0, 0},  {3, 3, 1, 1, 1, 0, 0},
                            {3, 3, 1, 1, 1, -1, -2}, {3, 3, 2, 2, 1, 0, 0},  {5, 5, 2, 2, 1, 4, 4},
                            {3, 3, 1, 1, 1, 12, 9},  {1, 1, 1, 1, 1, 0, 0},  {3, 3, 3, 3, 1, 1, 1},
                            {4, 4, 2, 1, 3, 5, 1},   {5, 5, 1, 1, 1, 1, -3}, {1, 9, 1, 1, 1, 0, 4}};
  uint64_t seed = 1;
  for (const Window& w : windows) {
    for (const int channels : {2, 16, 35}) {
      ConvCase c;
      c.n = 2;
      c.h = 7;
      c.w = 6;
      c.channels = channels;
      c.kernel_h = w.kernel_h;
      c.kernel_w = w.kernel_w;
      c.stride_h = w.stride_h;
      c.stride_w = w.stride_w;
      c.dilation_h = c.dilation_w = w.dilation;
      c.pad_top = w.pad_top;
      c.pad_left = w.pad_left;
      c.out_h = w.pad_top == 12 ? 24 : 0;
      c.out_w = w.pad_left == 9 ? 25 : 0;
      c.seed = seed++;
      check_all(c);
    }
  }
}

EK_TEST(fused_table_and_addition) {
  for (const int channels : {5, 16, 29, 70}) {
    for (const int stride : {1, 2}) {
      ConvCase c = window(3, stride, channels);
      c.y_gap = 2;
      for_each_fusion(c, check_all);
    }
  }
}

EK_TEST(extremes_and_ties) {
  for (const Values values : {Values::kRandom, Values::kExtremes, Values::kFar}) {
    for (const Scales scales : {Scales::kUsual, Scales::kTies, Scales::kAboveOne}) {
      for (const int kernel : {3, 5, 7}) {
        for (uint64_t seed = 1; seed <= 4; ++seed) {
          ConvCase c = window(kernel, seed % 2 ? 1 : 2, seed > 2 ? 19 : 64);
          c.values = values;
          c.scales = scales;
          c.clamp = seed % 3 == 0;
          c.seed = seed;
          check_all(c);
        }
      }
    }
  }
}

EK_TEST(threads) {
  for (const int threads : {1, 2, 3, 40}) {
    for (const int stride : {1, 2}) {
      ConvCase c = window(3, stride, 96);
      c.n = 2;
      c.h = 31;
      c.w = 33;
      c.threads = threads;
      c.seed = static_cast<uint64_t>(threads);
      check_all(c);
    }
  }
}

}  // namespace
}  // namespace edgekit::test
