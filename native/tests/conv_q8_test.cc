// conv_q8 on every instruction set of this build that this CPU runs, against a plain loop over the definition.
#include <numeric>
#include <vector>

#include "tests/check.h"
#include "tests/q8_conv_case.h"
#include "tests/q8_isa.h"

namespace edgekit::test {
namespace {

// The case with the packing and the activations of each instruction set; scalar kernels take them all.
void check_all(const ConvCase& c) {
  for (const Packing& packing : runnable_packings()) {
    ConvCase one = c;
    one.nr = packing.nr;
    one.kg = packing.kg;
    one.is_signed = packing.is_signed;
    one.saturating_pairs = packing.saturating_pairs;
    check_conv_case(one, packing.isa);
  }
}

// Every depth and every number of columns up to beyond two vectors of all kinds, with every number of rows up to beyond
// two tiles of all kernels.
EK_TEST(every_depth_column_and_row) {
  for_each_case(997, [](GridCase& grid) {
    ConvCase c;
    c.w = grid.in(1, 17);
    c.out_channels = grid.in(1, 130);
    c.channels = grid.in(1, 130);
    c.h = 1;
    vary(grid, c);
    if (grid.is_past_the_end()) return false;
    check_all(c);
    return true;
  });
}

// Random weights as the cases here have them make kernels run the loops of all forms.
EK_TEST(random_weights_have_rows_in_every_form) {
  ConvCase c;
  c.channels = 64;
  c.out_channels = 160;
  c.nr = 16;
  c.kg = 4;
  c.saturating_pairs = true;
  const std::vector<int> rows = rows_by_form(c);
  EK_CHECK(rows.size() == 7);
  for (const int count : rows) EK_CHECK(count > 0);
  EK_CHECK(std::accumulate(rows.begin(), rows.end(), 0) > c.channels / c.kg * c.out_channels / c.nr);
}

EK_TEST(every_small_window) {
  for_each_case(499, [](GridCase& grid) {
    ConvCase c;
    c.kernel_h = grid.in(1, 4);
    c.kernel_w = grid.in(1, 4);
    c.stride_h = grid.in(1, 3);
    c.stride_w = 1 + (c.stride_h + grid.any(2, 20)) % 3;
    c.dilation_h = c.dilation_w = grid.in(1, 2);
    c.pad_top = grid.in(-1, 3);
    c.pad_left = grid.in(-1, 3);
    c.h = grid.in(1, 5);
    c.w = grid.in(1, 5);
    const int channels[] = {1, 2, 3, 4, 8, 17};
    c.channels = channels[grid.in(0, 5)];
    c.out_channels = 1 + grid.any(35, 21);
    vary(grid, c);
    if (grid.is_past_the_end()) return false;
    check_all(c);
    return true;
  });
}

// Channels and columns around every vector length, rows around every tile height.
EK_TEST(pointwise_shapes) {
  uint64_t seed = 1;
  const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 96, 127, 130};
  for (const int channels : sizes) {
    for (const int out_channels : sizes) {
      ConvCase c;
      c.channels = channels;
      c.out_channels = out_channels;
      c.h = 1;
      c.w = static_cast<int>(1 + seed % 15);
      c.flush = seed % 2 ? GuardedBuffer::Flush::kEnd : GuardedBuffer::Flush::kBegin;
      c.seed = seed++;
      check_all(c);
    }
  }
}

EK_TEST(every_row_count) {
  for (const int channels : {20, 100}) {  // products of words and of bytes
    for (int rows = 1; rows <= 33; ++rows) {
      ConvCase c;
      c.channels = channels;
      c.out_channels = 37;
      c.h = 1;
      c.w = rows;
      c.y_gap = rows % 3;
      c.seed = static_cast<uint64_t>(rows);
      check_all(c);
    }
  }
}

EK_TEST(windows) {
  struct Window {
    int kernel_h, kernel_w, stride, dilation, pad_top, pad_left;
  };
  const Window windows[] = {{3, 3, 1, 1, 1, 1},  {3, 3, 2, 1, 1, 1}, {3, 3, 1, 2, 2, 2},  {5, 5, 1, 1, 2, 2},
                            {7, 7, 2, 1, 3, 3},  {1, 3, 1, 1, 0, 1}, {3, 1, 1, 1, 1, 0},  {2, 2, 2, 1, 0, 0},
                            {1, 1, 2, 1, 0, 0},  {3, 3, 3, 3, 4, 5}, {1, 1, 1, 1, 1, 1},  {3, 3, 1, 1, -1, -1},
                            {2, 3, 1, 1, -2, 3}, {4, 4, 1, 1, 9, 9}, {1, 1, 1, 1, -1, -2}};
  uint64_t seed = 100;
  for (const Window& window : windows) {
    for (const int channels : {1, 3, 4, 16, 19}) {
      for (const int variant : {0, 1, 2, 3}) {
        const int x_gap = variant % 2 * 5;
        ConvCase c;
        c.zero_padding = variant >= 2;
        c.n = 2;
        c.h = 6;
        c.w = 7;
        c.channels = channels;
        c.out_channels = 18;
        c.kernel_h = window.kernel_h;
        c.kernel_w = window.kernel_w;
        c.stride_h = c.stride_w = window.stride;
        c.dilation_h = c.dilation_w = window.dilation;
        c.pad_top = window.pad_top;
        c.pad_left = window.pad_left;
        c.out_h = window.pad_top == 9 ? 21 : 0;
        c.x_gap = x_gap;
        c.y_gap = x_gap;
        c.seed = seed++;
        check_all(c);
      }
    }
  }
}

EK_TEST(groups) {
  for (const int groups : {2, 3, 4}) {
    for (const int per_group : {1, 2, 5, 16}) {
      for (const int kernel : {1, 3}) {
        ConvCase c;
        c.groups = groups;
        c.channels = groups * per_group;
        c.out_channels = groups * (per_group + 1);
        c.kernel_h = c.kernel_w = kernel;
        c.pad_top = c.pad_left = kernel / 2;
        c.zero_padding = per_group == 16;
        c.seed = static_cast<uint64_t>(groups * 100 + per_group);
        check_all(c);
      }
    }
  }
}

// Groups of whole depth groups, with windows over the border: one copy of a few lines serves all groups.
EK_TEST(groups_with_borders) {
  struct Window {
    int kernel, stride, dilation, pad_top, pad_left, out_h;
  };
  const Window windows[] = {{3, 1, 1, 1, 1, 0},  {3, 2, 1, 1, 1, 0},  {5, 1, 2, 4, 4, 0}, {3, 3, 1, 0, 2, 0},
                            {3, 1, 1, 1, -1, 0}, {4, 1, 1, 9, 9, 35}, {3, 1, 1, 1, 1, 9}, {1, 2, 1, 1, 1, 0}};
  uint64_t seed = 1;
  for (const Window& window : windows) {
    for (const int per_group : {4, 8, 16, 20}) {
      for (const int variant : {0, 1, 2, 3}) {
        ConvCase c;
        c.n = 2;
        c.h = 20;
        c.w = 13 + 11 * (variant % 2);
        c.groups = 3 + variant;
        c.channels = c.groups * per_group;
        c.out_channels = c.groups * (per_group + variant);
        c.kernel_h = c.kernel_w = window.kernel;
        c.stride_h = c.stride_w = window.stride;
        c.dilation_h = c.dilation_w = window.dilation;
        c.pad_top = window.pad_top;
        c.pad_left = window.pad_left;
        c.out_h = window.out_h;
        c.x_gap = c.y_gap = variant % 2 * 5;
        c.zero_padding = variant == 3;
        c.add = variant == 2;
        c.threads = variant == 1 ? 3 : 1;
        c.flush = variant % 2 ? GuardedBuffer::Flush::kEnd : GuardedBuffer::Flush::kBegin;
        c.seed = seed++;
        check_all(c);
      }
    }
  }
}

// Wider than a copy may be: windows are read one by one.
EK_TEST(groups_of_a_long_line) {
  ConvCase c;
  c.h = 2;
  c.w = 25000;
  c.groups = 2;
  c.channels = c.out_channels = 8;
  c.kernel_h = c.kernel_w = 3;
  c.pad_top = c.pad_left = 1;
  check_all(c);
}

EK_TEST(fused_table_and_addition) {
  for (const int channels : {24, 120}) {
    for (const int out_channels : {1, 7, 16, 20, 64, 75}) {
      ConvCase c;
      c.channels = channels;
      c.out_channels = out_channels;
      c.w = 9;
      c.y_gap = 3;
      for_each_fusion(c, check_all);
    }
  }
}

// 255 times -128 over the whole depth: nothing may saturate on the way. Ties: half to even, odd and even zero points.
EK_TEST(extremes_and_ties) {
  for (const Values values : {Values::kRandom, Values::kExtremes, Values::kFar}) {
    for (const Scales scales : {Scales::kUsual, Scales::kTies, Scales::kAboveOne}) {
      for (uint64_t seed = 1; seed <= 12; ++seed) {
        ConvCase c;
        c.channels = seed % 2 ? 64 : 515;
        c.out_channels = 33;
        c.w = 4;
        c.h = 3;
        c.values = values;
        c.scales = scales;
        c.clamp = seed % 3 == 0;
        c.seed = seed;
        check_all(c);
      }
    }
  }
}

// Enough work to be shared, by rows and by columns; more threads than either.
EK_TEST(threads) {
  for (const int threads : {1, 2, 3, 5}) {
    for (const int width : {2, 40, 300}) {
      ConvCase c;
      c.h = 2;
      c.w = width;
      c.channels = width == 300 ? 64 : 256;
      c.out_channels = width == 2 ? 700 : 70;
      c.threads = threads;
      c.seed = static_cast<uint64_t>(threads);
      check_all(c);
    }
  }
}

// Blocks that begin and end within lines, so that every band of equal taps is cut somewhere.
EK_TEST(bands_of_padded_images) {
  for (const int stride : {1, 2}) {
    for (const int threads : {1, 3}) {
      ConvCase c;
      c.n = 2;
      c.h = 23;
      c.w = 37;
      c.channels = 64;
      c.out_channels = 70;
      c.kernel_h = c.kernel_w = 3;
      c.stride_h = c.stride_w = stride;
      c.pad_top = c.pad_left = 1;
      c.zero_padding = true;
      c.add = true;
      c.threads = threads;
      for (const int seed : {20 * stride + 2 * threads, 13}) {  // parts of one tap, or of several
        c.seed = static_cast<uint64_t>(seed);
        check_all(c);
      }
    }
  }
}

// A padded 3x3 convolution whose weights are a list of rows. Even seeds: each part is of one tap.
ConvCase listed_case(int nr, uint64_t seed) {
  ConvCase c;
  c.h = c.w = 9;
  c.channels = 64;
  c.out_channels = 70;
  c.kernel_h = c.kernel_w = 3;
  c.pad_top = c.pad_left = 1;
  c.nr = nr;
  c.kg = 4;
  c.saturating_pairs = true;
  c.zero_padding = true;
  c.seed = seed;
  return c;
}

// Only where each part of a list is of one tap.
EK_TEST(taps_of_lists_are_skipped) {
  ConvCase c = listed_case(16, 2);
  EK_CHECK(skips_taps(c, Isa::kScalar));
  const std::vector<int> rows = rows_by_form(c);
  EK_CHECK(std::accumulate(rows.begin(), rows.end(), 0) > 0);  // it is a list
  c.zero_padding = false;
  EK_CHECK(!skips_taps(c, Isa::kScalar));
  c.zero_padding = true;
  c.seed = 13;  // parts of 5 depth groups, taps of 16
  EK_CHECK(!skips_taps(c, Isa::kScalar));
}

// Kernels that know no lists leave them to the scalar one.
EK_TEST(lists_on_every_instruction_set) {
  for (const Packing& packing : runnable_packings()) {
    if (packing.kg != 4) continue;
    for (const uint64_t seed : {2, 4, 13}) {
      ConvCase c = listed_case(packing.nr, seed);
      c.zero_padding = seed != 4;
      c.is_signed = packing.is_signed;
      check_conv_case(c, packing.isa);
      c.is_signed = true;
      check_conv_case(c, Isa::kScalar);
    }
  }
}

}  // namespace
}  // namespace edgekit::test
