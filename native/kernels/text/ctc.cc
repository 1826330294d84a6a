#include "kernels/text/ctc.h"

namespace edgekit::text {
namespace {

// Index of the first of the largest values. Blocks find the maximum without branches, so that compilers vectorise it.
int first_of_largest(const float* values, int count) {
  constexpr int kBlock = 64;
  float best = values[0];
  int best_block = 0;
  for (int begin = 0; begin < count; begin += kBlock) {
    const int end = begin + kBlock < count ? begin + kBlock : count;
    float largest = values[begin];
    for (int i = begin; i < end; ++i) largest = values[i] > largest ? values[i] : largest;
    if (largest > best) {
      best = largest;
      best_block = begin;
    }
  }
  int i = best_block;
  while (i + 1 < count && !(values[i] >= best)) ++i;
  return i;
}

}  // namespace

CtcPath ctc_greedy(const float* rows, int steps, int classes, int blank) {
  CtcPath path;
  int previous = -1;
  for (int step = 0; step < steps; ++step) {
    const float* row = rows + static_cast<int64_t>(step) * classes;
    const int best = first_of_largest(row, classes);
    if (best != previous && best != blank) {
      path.class_ids.push_back(best);
      path.scores.push_back(row[best]);
    }
    previous = best;
  }
  return path;
}

}  // namespace edgekit::text
