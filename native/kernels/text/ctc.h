// Greedy decoding of connectionist temporal classification (Graves et al., 2006).
#ifndef EDGEKIT_KERNELS_TEXT_CTC_H_
#define EDGEKIT_KERNELS_TEXT_CTC_H_

#include <cstdint>
#include <vector>

namespace edgekit::text {

struct CtcPath {
  std::vector<int32_t> class_ids;
  std::vector<float> scores;  // value of the class at the first step that shows it
};

// Best class of each of the steps, repeats merged, blanks dropped. rows: steps x classes, dense.
CtcPath ctc_greedy(const float* rows, int steps, int classes, int blank);

}  // namespace edgekit::text

#endif  // EDGEKIT_KERNELS_TEXT_CTC_H_
