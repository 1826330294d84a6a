// Detector outputs to boxes: candidates above a threshold, then exact suppression by class.
#ifndef EDGEKIT_KERNELS_NMS_NMS_H_
#define EDGEKIT_KERNELS_NMS_NMS_H_

#include <cstdint>
#include <vector>

namespace edgekit::nms {

// Boxes x0, y0, x1, y1 in input pixels, in the order of the anchors they come from.
struct Candidates {
  std::vector<float> boxes_xyxy;  // 4 a candidate
  std::vector<float> scores;
  std::vector<int32_t> class_ids;
  int64_t size() const { return static_cast<int64_t>(scores.size()); }
  void add(const float (&box)[4], float score, int32_t class_id) {
    boxes_xyxy.insert(boxes_xyxy.end(), box, box + 4);
    scores.push_back(score);
    class_ids.push_back(class_id);
  }
};

struct NmsOptions {
  float iou_threshold = 0.45f;
  int max_detections = 300;
  bool class_agnostic = false;
};

// Most candidates that enter the suppression, by score; bounds the quadratic part on hostile outputs.
constexpr int64_t kMaxCandidates = 30000;

// Greedy suppression, best score first, equal scores in the order given; a box goes when it overlaps a kept box of its
// class (of any class when agnostic) with intersection / union > iou_threshold. Computed in double from the float
// boxes without moving them, so no offset trick blurs them. NaN scores never win and NaN boxes overlap nothing.
// Returns the kept indices, best first.
std::vector<int64_t> suppress(const float* boxes_xyxy, const float* scores, const int32_t* class_ids, int64_t count,
                              const NmsOptions& options);

// All of the following keep anchors whose best class scores at least `threshold` (ssd: every class that does).

// YOLOv8 and its followers, one output: rows cx, cy, w, h, then class probabilities; n anchors a row.
void yolov8_candidates(const float* output, int classes, int64_t n, float threshold, Candidates* out);

// One raw YOLOv8 head [4 * bins + classes, height, width]: distances l, t, r, b as distributions over bins (Li et al.,
// "Generalized Focal Loss", 2020), then class logits. Distances are in cells of `stride` pixels.
struct HeadShape {
  int classes, height, width, stride;
};
void yolov8_head_candidates(const float* head, const HeadShape& shape, int bins, float threshold, Candidates* out);

// YOLOv5 and v7, decoded: n rows cx, cy, w, h, objectness, class probabilities; score = objectness * class.
void yolov5_candidates(const float* output, int classes, int64_t n, float threshold, Candidates* out);

// One raw YOLOv5 head [anchors, height, width, 5 + classes] of logits, or [anchors * (5 + classes), height, width] with
// channels_first. anchors_wh: width and height in pixels of each anchor.
void yolov5_head_candidates(const float* head, const HeadShape& shape, const std::vector<float>& anchors_wh,
                            bool channels_first, float threshold, Candidates* out);

// SSD: n box codes and n rows of class probabilities whose class 0 is the background, and anchors cx, cy, w, h in 0..1;
// codes are dx, dy, dw, dh divided by the variances (Liu et al., "SSD", 2016). Without anchors the boxes are already
// x0, y0, x1, y1 in 0..1. Boxes come out in pixels of an input of the given size; class ids count from the first
// foreground class.
struct SsdShape {
  int classes;  // background included
  int64_t n;
  int input_height, input_width;
  float center_variance, size_variance;
};
void ssd_candidates(const float* codes, const float* scores, const float* anchors_cxcywh, const SsdShape& shape,
                    float threshold, Candidates* out);

}  // namespace edgekit::nms

#endif  // EDGEKIT_KERNELS_NMS_NMS_H_
