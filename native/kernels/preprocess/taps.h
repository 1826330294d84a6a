// Where each resized pixel looks in the source, in exact integer arithmetic (definition 2 of preprocess.h).
#ifndef EDGEKIT_KERNELS_PREPROCESS_TAPS_H_
#define EDGEKIT_KERNELS_PREPROCESS_TAPS_H_

#include <cstdint>
#include <vector>

#include "kernels/preprocess/preprocess.h"

namespace edgekit::preprocess {

// One axis of one plane. Lengths and begin are in luma pixels.
struct Axis {
  int crop_begin, crop_length;
  int resized_length;
  int subsampling;               // 1, or 2 for chroma
  int sample_begin, sample_end;  // samples that may be read
};

// The taps of resized pixels begin .. end-1: pixel k uses samples first[k] .. first[k] + n - 1 with the weights
// weights[offsets[k] .. offsets[k] + n), 14 bits each (15 for bilinear_q15), n = offsets[k + 1] - offsets[k].
struct Taps {
  std::vector<int32_t> first;
  std::vector<int32_t> offsets;
  std::vector<int16_t> weights;
  int count() const { return static_cast<int>(first.size()); }
};

Taps area_taps(const Axis& axis, int begin, int end);

// Bilinear and nearest: one sample and the weight, out of 2^bits, of the one after it (0 at the crop's last sample).
struct StepTaps {
  std::vector<int32_t> first;
  std::vector<int32_t> weight;
};
StepTaps step_taps(const Axis& axis, int begin, int end, bool nearest, int bits);

}  // namespace edgekit::preprocess

#endif  // EDGEKIT_KERNELS_PREPROCESS_TAPS_H_
