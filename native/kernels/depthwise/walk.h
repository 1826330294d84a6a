// How kernels of square windows walk over a strip with few registers (AVX2, NEON): one unit of channels after the
// other, a run of pixels at a time, in steps of two pixels of each output row. Included by kernels' files only, each
// with windows of its own.
//
// A Window<kernel, stride, out_rows> has the unit's taps in registers:
//   kKernel, kStride, kOut        its template arguments
//   kOldColumns, kLastColumn      a step reads columns [kOldColumns, kLastColumn] anew, counted from its first pixel's
//   read_old(pixels)              reads what the first step needs of the columns before kOldColumns
//   step(pixels, unit, y0, y1)    stores the sums of two pixels of each output row
#ifndef EDGEKIT_KERNELS_DEPTHWISE_WALK_H_
#define EDGEKIT_KERNELS_DEPTHWISE_WALK_H_

#include "kernels/depthwise/depthwise_q8.h"

namespace edgekit {

// Sums of a run of pixels of one output row, on their way from the multiplications to y. To finish them in a loop of
// its own keeps both loops short of what a core looks ahead.
inline constexpr int kRunPixels = 32;

template <typename Window>
class DepthwiseWalk {
 public:
  // Pixels [ox, ox + count).
  DepthwiseWalk(const DepthwiseQ8Strip& s, int32_t ox, int count) : x_step_(s.x_step), steps_((count + 1) / 2) {
    const int64_t first_ix = s.window.first_column(ox);
    offset_ = first_ix * s.x_step;
    bool all_rows = true;
    for (int r = 0; r < kRows; ++r) {
      rows_[r] = s.rows[r];
      all_rows = all_rows && s.rows[r] != nullptr;
    }
    // A step is an inner one if what it reads anew is inside of the image.
    const int64_t left = -(first_ix + Window::kOldColumns), right = s.w - Window::kLastColumn - first_ix;
    first_inner_ = all_rows && left > 0 ? at_most_steps((left + kAdvance - 1) / kAdvance) : 0;
    last_inner_ = all_rows && right > 0 ? at_most_steps((right + kAdvance - 1) / kAdvance) : 0;
    if (last_inner_ < first_inner_) last_inner_ = first_inner_;
    find_borders(s, first_ix, 0, (first_inner_ - 1) * kAdvance + Window::kLastColumn + 1);
    find_borders(s, first_ix, last_inner_ * kAdvance + Window::kOldColumns,
                 (steps_ - 1) * kAdvance + Window::kLastColumn + 1);
  }

  // Sums of the pixels, rounded up to an even number, of each output row.
  template <typename Unit, typename PixelSums>
  __attribute__((always_inline)) void run(const Unit* unit, int32_t base, PixelSums (&sums)[2][kRunPixels]) {
    const auto border = [&](int step) { return Border{borders_ + step * kAdvance, base}; };
    Window window;
    window.read_old(border(0));
    int i = 0;
#pragma GCC unroll 1
    for (const int stop : {first_inner_, steps_}) {
      for (; i < stop; ++i) window.step(border(i), *unit, &sums[0][2 * i], &sums[1][2 * i]);
      int64_t offset = offset_ + i * kAdvance * x_step_ + base;
      for (; i < last_inner_; ++i, offset += kAdvance * x_step_) {
        asm("" : "+r"(unit));  // or GCC would copy the weights to the stack
        window.step(Inner{rows_, offset, x_step_}, *unit, &sums[0][2 * i], &sums[1][2 * i]);
      }
    }
  }

 private:
  static constexpr int kAdvance = 2 * Window::kStride;  // columns from one step to the next
  static constexpr int kRows = Window::kKernel + (Window::kOut - 1) * Window::kStride;
  static constexpr int kColumns = (kRunPixels / 2 - 1) * kAdvance + Window::kLastColumn + 1;

  // Pixels of a step's columns: all inside of the image, or anywhere.
  struct Inner {
    const uint8_t* const* rows;
    int64_t offset, x_step;
    __attribute__((always_inline)) const uint8_t* pixel(int row, int column) const {
      return rows[row] + (offset + column * x_step);
    }
  };
  struct Border {
    const uint8_t* const (*columns)[kRows];
    int32_t base;
    __attribute__((always_inline)) const uint8_t* pixel(int row, int column) const {
      return columns[column][row] + base;
    }
  };

  int at_most_steps(int64_t steps) const { return steps < steps_ ? static_cast<int>(steps) : steps_; }

  // Where the pixels of those columns are, counted from the first.
  void find_borders(const DepthwiseQ8Strip& s, int64_t first_ix, int begin, int end) {
    for (int column = begin; column < end; ++column) {
      for (int r = 0; r < kRows; ++r) borders_[column][r] = s.pixel(r, first_ix + column);
    }
  }

  int64_t x_step_, offset_;
  int steps_, first_inner_, last_inner_;
  const uint8_t* rows_[kRows];
  const uint8_t* borders_[kColumns][kRows];  // set where border steps read
};

// Sums of a run, of up to kUnits units at a time, which an epilogue finishes together.
template <int kUnits, int kUnitChannels>
struct RunSums {
  alignas(64) int32_t sums[kUnits][kDepthwiseMostRows][kRunPixels][kUnitChannels];
  DepthwiseQ8Block blocks[kUnits];
  int units;
  int32_t ox;  // of the first pixel
  int count;   // of pixels; sums are readable up to a multiple of four
};

// Calls sum(block, sums of its output rows) for each unit of a run; then finishes the run.
template <int kUnits, int kUnitChannels, typename Sum, typename Epilogue>
__attribute__((always_inline)) inline void for_each_unit(const DepthwiseQ8Strip& s, RunSums<kUnits, kUnitChannels>& run,
                                                         const Epilogue& epilogue, const Sum& sum) {
  for (int32_t i = s.first_block; i < s.last_block; i += kUnits) {
    run.units = s.last_block - i < kUnits ? s.last_block - i : kUnits;
    for (int unit = 0; unit < run.units; ++unit) {
      run.blocks[unit] = s.block(i + unit, kUnitChannels);
      sum(run.blocks[unit], run.sums[unit]);
    }
    epilogue.finish(run);
  }
}

// Calls body() for each run of the strip's pixels.
template <int kUnits, int kUnitChannels, typename Body>
__attribute__((always_inline)) inline void for_each_run(const DepthwiseQ8Strip& s, RunSums<kUnits, kUnitChannels>& run,
                                                        const Body& body) {
  for (run.ox = s.first_ox; run.ox < s.last_ox; run.ox += kRunPixels) {
    run.count = s.last_ox - run.ox < kRunPixels ? s.last_ox - run.ox : kRunPixels;
    body();
  }
}

// Epilogue: epilogue(strip).finish(run), with kUnits and kUnitChannels. Unit: what the kernel packs.
template <typename Window, typename Unit, typename Epilogue>
void walk_units(const DepthwiseQ8Strip& s) {
  const Epilogue epilogue(s);
  RunSums<Epilogue::kUnits, Epilogue::kUnitChannels> run;
  for_each_run(s, run, [&] {
    DepthwiseWalk<Window> walk(s, run.ox, run.count);
    for_each_unit(s, run, epilogue, [&](const DepthwiseQ8Block& block, auto& sums) {
      walk.run(static_cast<const Unit*>(block.packed), block.base, sums);
    });
  });
}

// The same for any window, one output row. sum(block, ox, other, sums) gives the sums of pixels ox and other.
template <typename Epilogue, typename Sum>
__attribute__((always_inline)) inline void walk_pixels(const DepthwiseQ8Strip& s, const Sum& sum) {
  const Epilogue epilogue(s);
  RunSums<Epilogue::kUnits, Epilogue::kUnitChannels> run;
  for_each_run(s, run, [&] {
    for_each_unit(s, run, epilogue, [&](const DepthwiseQ8Block& block, auto& sums) {
      for (int i = 0; i < run.count; i += 2) {
        const int32_t ox = run.ox + i;
        sum(block, ox, i + 1 < run.count ? ox + 1 : ox, sums[0] + i);
      }
    });
  });
}

}  // namespace edgekit

// The three functions of a kernel of square windows, by templates of its own file: walk, pack and packed_bytes.
#define EK_SQUARE_KERNEL(name, kernel, stride)                                                     \
  void name(const DepthwiseQ8Strip& strip) noexcept { walk<kernel, stride>(strip); }               \
  void pack_##name(const DepthwiseQ8Weights& w, int32_t first, int32_t n, void* packed) noexcept { \
    pack<kernel, stride>(w, first, n, packed);                                                     \
  }                                                                                                \
  size_t packed_bytes_##name(int32_t, int32_t) { return packed_bytes<kernel, stride>(); }

#endif  // EDGEKIT_KERNELS_DEPTHWISE_WALK_H_
