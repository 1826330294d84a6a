// From raw detector outputs to candidates. Thresholds are tested before anything costly is computed.
#include <algorithm>
#include <cmath>

#include "kernels/nms/nms.h"

namespace edgekit::nms {
namespace {

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// The logit at which sigmoid reaches the threshold, lowered by a little so that rounding loses no candidate; the exact
// test on the score follows.
float logit_below(float threshold) {
  if (threshold <= 0) return -INFINITY;
  if (threshold >= 1) return INFINITY;
  return std::log(threshold / (1 - threshold)) - 1e-3f;
}

void from_center(float cx, float cy, float width, float height, float (&box)[4]) {
  box[0] = cx - width / 2;
  box[1] = cy - height / 2;
  box[2] = cx + width / 2;
  box[3] = cy + height / 2;
}

// Best of `classes` rows that lie `row_stride` elements apart, for a block of n columns.
constexpr int kBlock = 256;
void best_of_rows(const float* rows, int classes, int64_t row_stride, int n, float* best, int32_t* which) {
  std::copy_n(rows, n, best);
  std::fill_n(which, n, 0);
  for (int c = 1; c < classes; ++c) {
    const float* row = rows + c * row_stride;
    for (int i = 0; i < n; ++i) {
      const bool better = row[i] > best[i];
      best[i] = better ? row[i] : best[i];
      which[i] = better ? c : which[i];
    }
  }
}

int best_of(const float* values, int count, int64_t stride) {
  int best = 0;
  for (int c = 1; c < count; ++c) {
    if (values[c * stride] > values[best * stride]) best = c;
  }
  return best;
}

// Mean of a distribution given by logits `stride` elements apart: the expected distance in cells.
float expected_bin(const float* logits, int bins, int64_t stride) {
  float peak = logits[0];
  for (int b = 1; b < bins; ++b) peak = std::max(peak, logits[b * stride]);
  float sum = 0, weighted = 0;
  for (int b = 0; b < bins; ++b) {
    const float weight = std::exp(logits[b * stride] - peak);
    sum += weight;
    weighted += weight * static_cast<float>(b);
  }
  return weighted / sum;
}

}  // namespace

void yolov8_candidates(const float* output, int classes, int64_t n, float threshold, Candidates* out) {
  float best[kBlock];
  int32_t which[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, n - begin));
    best_of_rows(output + 4 * n + begin, classes, n, count, best, which);
    for (int i = 0; i < count; ++i) {
      if (!(best[i] >= threshold)) continue;
      const float* anchor = output + begin + i;
      float box[4];
      from_center(anchor[0], anchor[n], anchor[2 * n], anchor[3 * n], box);
      out->add(box, best[i], which[i]);
    }
  }
}

void yolov8_head_candidates(const float* head, const HeadShape& shape, int bins, float threshold, Candidates* out) {
  const int64_t cells = static_cast<int64_t>(shape.height) * shape.width;
  const float least = logit_below(threshold);
  const float stride = static_cast<float>(shape.stride);
  float best[kBlock];
  int32_t which[kBlock];
  for (int64_t begin = 0; begin < cells; begin += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, cells - begin));
    best_of_rows(head + 4 * bins * cells + begin, shape.classes, cells, count, best, which);
    for (int i = 0; i < count; ++i) {
      if (!(best[i] >= least)) continue;
      const float score = sigmoid(best[i]);
      if (!(score >= threshold)) continue;
      const int64_t cell = begin + i;
      float distance[4];
      for (int side = 0; side < 4; ++side) {
        distance[side] = expected_bin(head + side * bins * cells + cell, bins, cells);
      }
      const float cx = static_cast<float>(cell % shape.width) + 0.5f;
      const float cy = static_cast<float>(cell / shape.width) + 0.5f;
      const float box[4] = {(cx - distance[0]) * stride, (cy - distance[1]) * stride, (cx + distance[2]) * stride,
                            (cy + distance[3]) * stride};
      out->add(box, score, which[i]);
    }
  }
}

void yolov5_candidates(const float* output, int classes, int64_t n, float threshold, Candidates* out) {
  for (int64_t i = 0; i < n; ++i) {
    const float* row = output + i * (5 + classes);
    if (!(row[4] >= threshold)) continue;  // class probabilities are at most 1
    const int best = best_of(row + 5, classes, 1);
    const float score = row[4] * row[5 + best];
    if (!(score >= threshold)) continue;
    float box[4];
    from_center(row[0], row[1], row[2], row[3], box);
    out->add(box, score, best);
  }
}

void yolov5_head_candidates(const float* head, const HeadShape& shape, const std::vector<float>& anchors_wh,
                            bool channels_first, float threshold, Candidates* out) {
  const int64_t cells = static_cast<int64_t>(shape.height) * shape.width;
  const int values = 5 + shape.classes;
  const int64_t step = channels_first ? cells : 1;  // between the values of one anchor
  const float least = logit_below(threshold);
  const float stride = static_cast<float>(shape.stride);
  for (size_t anchor = 0; anchor < anchors_wh.size() / 2; ++anchor) {
    const float* plane = head + static_cast<int64_t>(anchor) * values * cells;
    for (int64_t cell = 0; cell < cells; ++cell) {
      const float* v = plane + (channels_first ? cell : cell * values);
      if (!(v[4 * step] >= least)) continue;
      const int best = best_of(v + 5 * step, shape.classes, step);
      const float score = sigmoid(v[4 * step]) * sigmoid(v[(5 + best) * step]);
      if (!(score >= threshold)) continue;
      const float cx = (2 * sigmoid(v[0]) - 0.5f + static_cast<float>(cell % shape.width)) * stride;
      const float cy = (2 * sigmoid(v[step]) - 0.5f + static_cast<float>(cell / shape.width)) * stride;
      const float w = 2 * sigmoid(v[2 * step]), h = 2 * sigmoid(v[3 * step]);
      float box[4];
      from_center(cx, cy, w * w * anchors_wh[2 * anchor], h * h * anchors_wh[2 * anchor + 1], box);
      out->add(box, score, best);
    }
  }
}

void ssd_candidates(const float* codes, const float* scores, const float* anchors_cxcywh, const SsdShape& shape,
                    float threshold, Candidates* out) {
  const float width = static_cast<float>(shape.input_width), height = static_cast<float>(shape.input_height);
  for (int64_t i = 0; i < shape.n; ++i) {
    const float* row = scores + i * shape.classes;
    const float* code = codes + 4 * i;
    for (int c = 1; c < shape.classes; ++c) {
      if (!(row[c] >= threshold)) continue;
      float box[4] = {code[0], code[1], code[2], code[3]};
      if (anchors_cxcywh != nullptr) {
        const float* anchor = anchors_cxcywh + 4 * i;
        from_center(anchor[0] + code[0] * shape.center_variance * anchor[2],
                    anchor[1] + code[1] * shape.center_variance * anchor[3],
                    anchor[2] * std::exp(code[2] * shape.size_variance),
                    anchor[3] * std::exp(code[3] * shape.size_variance), box);
      }
      const float pixels[4] = {box[0] * width, box[1] * height, box[2] * width, box[3] * height};
      out->add(pixels, row[c], c - 1);
    }
  }
}

}  // namespace edgekit::nms
