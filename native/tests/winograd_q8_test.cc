// conv_q8_winograd on every instruction set of this build that this CPU runs, against a plain loop over the definition
// of conv_q8.
#include "tests/check.h"
#include "tests/q8_conv_case.h"
#include "tests/q8_isa.h"

namespace edgekit::test {
namespace {

ConvCase winograd_case(uint64_t seed) {
  ConvCase c;
  c.winograd = true;
  c.kernel_h = c.kernel_w = 3;
  c.pad_top = c.pad_left = 1;
  c.channels = 16;
  c.out_channels = 16;
  c.flush = seed % 2 ? GuardedBuffer::Flush::kEnd : GuardedBuffer::Flush::kBegin;
  c.seed = seed;
  return c;
}

void check_all(const ConvCase& c) {
  check_conv_case(c, Isa::kScalar);
  for (const IsaPacking& row : kIsaPacking) {
    if (row.winograd && can_run(row.isa)) check_conv_case(c, row.isa);
  }
}

EK_TEST(every_number_of_channels) {
  for (int channels = 1; channels <= 50; ++channels) {
    for (const int out_channels : {1, 15, 16, 17, 40}) {
      ConvCase c = winograd_case(static_cast<uint64_t>(channels * 50 + out_channels));
      c.channels = channels;
      c.out_channels = out_channels;
      check_all(c);
    }
  }
}

// Tiles that end inside, at and beyond the image, and fewer pixels than a tile.
EK_TEST(every_size_of_image) {
  for (int h = 1; h <= 10; ++h) {
    for (int w = 1; w <= 14; ++w) {
      for (const int pad : {0, 1, 2}) {
        if (h + 2 * pad < 3 || w + 2 * pad < 3) continue;
        ConvCase c = winograd_case(static_cast<uint64_t>(h * 100 + w * 3 + pad));
        c.h = h;
        c.w = w;
        c.pad_top = c.pad_left = pad;
        c.x_gap = w % 3;
        c.y_gap = h % 3;
        check_all(c);
      }
    }
  }
}

// Pads that differ, are negative or wider than the kernel; several images.
EK_TEST(pads_and_batches) {
  uint64_t seed = 1;
  for (const int top : {-1, 0, 3, 7}) {
    for (const int left : {-2, 1, 9}) {
      ConvCase c = winograd_case(seed++);
      c.n = 2;
      c.h = 9;
      c.w = 11;
      c.pad_top = top;
      c.pad_left = left;
      c.out_h = 8;
      c.out_w = 13;
      c.zero_padding = seed % 2;
      check_all(c);
    }
  }
}

EK_TEST(fused_table_and_addition) {
  for (const int out_channels : {7, 16, 40}) {
    ConvCase c = winograd_case(static_cast<uint64_t>(out_channels));
    c.h = c.w = 10;
    c.out_channels = out_channels;
    c.y_gap = 2;
    for_each_fusion(c, check_all);
  }
}

// 255 times 127 over all taps: the greatest transformed values, and sums close to what 26 bits hold.
EK_TEST(extremes_and_ties) {
  for (const Values values : {Values::kRandom, Values::kExtremes}) {
    for (const Scales scales : {Scales::kUsual, Scales::kTies, Scales::kAboveOne}) {
      for (uint64_t seed = 1; seed <= 8; ++seed) {
        ConvCase c = winograd_case(seed);
        c.channels = seed % 2 ? 48 : 114;
        c.out_channels = 33;
        c.h = 5;
        c.w = 9;
        c.values = values;
        c.scales = scales;
        check_all(c);
      }
    }
  }
}

// Enough work to be shared, by tiles and by columns; blocks of several sizes.
EK_TEST(threads_and_blocks) {
  for (const int threads : {1, 2, 3, 5}) {
    for (const int size : {7, 30, 57}) {
      ConvCase c = winograd_case(static_cast<uint64_t>(threads * 100 + size));
      c.h = c.w = size;
      c.channels = size == 7 ? 500 : 20;
      c.out_channels = size == 7 ? 100 : 24;
      c.add = true;
      c.threads = threads;
      check_all(c);
    }
  }
}

}  // namespace
}  // namespace edgekit::test
