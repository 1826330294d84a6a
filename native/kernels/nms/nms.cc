#include "kernels/nms/nms.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace edgekit::nms {
namespace {

struct Box {
  double x0, y0, x1, y1, area;
};

Box load(const float* box) {
  const Box b{box[0], box[1], box[2], box[3], 0};
  return {b.x0, b.y0, b.x1, b.y1, std::max(0.0, b.x1 - b.x0) * std::max(0.0, b.y1 - b.y0)};
}

bool overlaps(const Box& a, const Box& b, double threshold) {
  const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(width > 0 && height > 0)) return false;
  const double shared = width * height;
  return shared / (a.area + b.area - shared) > threshold;
}

}  // namespace

std::vector<int64_t> suppress(const float* boxes_xyxy, const float* scores, const int32_t* class_ids, int64_t count,
                              const NmsOptions& options) {
  std::vector<int64_t> order;
  order.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    if (scores[i] == scores[i]) order.push_back(i);  // NaN would break the sort's ordering
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  if (static_cast<int64_t>(order.size()) > kMaxCandidates) order.resize(kMaxCandidates);

  std::vector<int64_t> kept;
  std::unordered_map<int32_t, std::vector<Box>> kept_boxes;  // by class
  const double threshold = options.iou_threshold;
  for (int64_t i : order) {
    if (static_cast<int64_t>(kept.size()) >= options.max_detections) break;
    std::vector<Box>& rivals = kept_boxes[options.class_agnostic ? 0 : class_ids[i]];
    const Box box = load(boxes_xyxy + 4 * i);
    const bool covered =
        std::any_of(rivals.begin(), rivals.end(), [&](const Box& rival) { return overlaps(box, rival, threshold); });
    if (covered) continue;
    rivals.push_back(box);
    kept.push_back(i);
  }
  return kept;
}

}  // namespace edgekit::nms
