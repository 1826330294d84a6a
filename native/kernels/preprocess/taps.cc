#include "kernels/preprocess/taps.h"

#include <algorithm>

namespace edgekit::preprocess {
namespace {

int64_t floor_divide(int64_t numerator, int64_t denominator) {
  const int64_t quotient = numerator / denominator;
  return numerator % denominator < 0 ? quotient - 1 : quotient;
}

}  // namespace

StepTaps step_taps(const Axis& axis, int begin, int end, bool nearest, int bits) {
  StepTaps taps;
  const int64_t length = axis.resized_length;
  const int64_t denominator = 2 * axis.subsampling * length;
  for (int i = begin; i < end; ++i) {
    // Position of the sample's left neighbour times the denominator; nearest asks for the cell instead of the centre.
    int64_t numerator = (2 * static_cast<int64_t>(i) + 1) * axis.crop_length + 2 * length * axis.crop_begin;
    if (!nearest) numerator -= axis.subsampling * length;
    int64_t first = floor_divide(numerator, denominator);
    int64_t weight = 0;
    if (!nearest) {
      const int64_t rest = numerator - first * denominator;
      weight = (2 * (rest << bits) + denominator) / (2 * denominator);
      if (weight == int64_t{1} << bits) {
        ++first;
        weight = 0;
      }
    }
    if (first < axis.sample_begin || first >= axis.sample_end - 1) weight = 0;
    taps.first.push_back(static_cast<int32_t>(std::clamp<int64_t>(first, axis.sample_begin, axis.sample_end - 1)));
    taps.weight.push_back(static_cast<int32_t>(weight));
  }
  return taps;
}

Taps area_taps(const Axis& axis, int begin, int end) {
  Taps taps;
  taps.offsets.push_back(0);
  const int64_t cell = static_cast<int64_t>(axis.resized_length) * axis.subsampling;  // a sample, in common units
  const int64_t low = axis.sample_begin * cell, high = axis.sample_end * cell;
  for (int i = begin; i < end; ++i) {
    const int64_t origin = static_cast<int64_t>(axis.crop_begin) * axis.resized_length;
    const int64_t from = std::clamp(origin + static_cast<int64_t>(i) * axis.crop_length, low, high - 1);
    const int64_t to = std::clamp(origin + (static_cast<int64_t>(i) + 1) * axis.crop_length, from + 1, high);
    const int64_t first = from / cell, last = (to - 1) / cell;
    taps.first.push_back(static_cast<int32_t>(first));
    int64_t before = 0;
    for (int64_t sample = first; sample <= last; ++sample) {
      // Rounding the running sum rather than each share makes the weights add up to 2^14 exactly.
      const int64_t covered = std::min((sample + 1) * cell, to) - from;
      const int64_t sum = (2 * (covered << 14) + (to - from)) / (2 * (to - from));
      taps.weights.push_back(static_cast<int16_t>(sum - before));
      before = sum;
    }
    taps.offsets.push_back(static_cast<int32_t>(taps.weights.size()));
  }
  return taps;
}

}  // namespace edgekit::preprocess
