#include "kernels/text/dbnet.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace edgekit::text {
namespace {

// A map with one pixel of border on each side, so that neighbours need no bounds checks.
struct Mask {
  int height, width;
  std::vector<uint8_t> pixels;
  int pitch() const { return width + 2; }
  uint8_t& at(int y, int x) { return pixels[static_cast<size_t>(y + 1) * pitch() + x + 1]; }
};

Mask threshold(const float* map, int height, int width, const DbnetOptions& options) {
  Mask mask{height, width, {}};
  mask.pixels.assign(static_cast<size_t>(height + 2) * (width + 2), 0);
  for (int y = 0; y < height; ++y) {
    const float* row = map + static_cast<size_t>(y) * width;
    for (int x = 0; x < width; ++x) {
      if (!(row[x] > options.pixel_threshold)) continue;
      mask.at(y, x) = 1;
      if (!options.dilate) continue;
      if (x + 1 < width) mask.at(y, x + 1) = 1;
      if (y + 1 < height) mask.at(y + 1, x) = 1;
      if (x + 1 < width && y + 1 < height) mask.at(y + 1, x + 1) = 1;
    }
  }
  return mask;
}

// First and last pixel of each row of one region: all that its hull needs.
struct Outline {
  int top = 0;
  std::vector<std::pair<int, int>> rows;
};

// Takes the 8-connected region of a pixel out of the mask. stack is reused between calls.
Outline take_region(Mask* mask, int start_y, int start_x, std::vector<std::pair<int, int>>* stack) {
  Outline outline;
  outline.top = start_y;  // regions are met in reading order, so no pixel lies above
  stack->assign(1, {start_y, start_x});
  mask->at(start_y, start_x) = 0;
  while (!stack->empty()) {
    const auto [y, x] = stack->back();
    stack->pop_back();
    const size_t row = static_cast<size_t>(y - outline.top);
    if (row >= outline.rows.size()) outline.rows.resize(row + 1, {std::numeric_limits<int>::max(), -1});
    auto& [first, last] = outline.rows[row];
    first = std::min(first, x);
    last = std::max(last, x);
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        uint8_t& pixel = mask->at(y + dy, x + dx);
        if (pixel == 0) continue;
        pixel = 0;
        stack->push_back({y + dy, x + dx});
      }
    }
  }
  return outline;
}

Rectangle rectangle_of(const Outline& outline) {
  std::vector<Point> points;
  points.reserve(2 * outline.rows.size());
  for (size_t row = 0; row < outline.rows.size(); ++row) {
    const double y = outline.top + static_cast<double>(row);
    points.push_back({static_cast<double>(outline.rows[row].first), y});
    points.push_back({static_cast<double>(outline.rows[row].second), y});
  }
  return smallest_rectangle(convex_hull(&points));
}

// Mean probability of the pixels in the rectangle or within half a pixel of it.
float mean_inside(const float* map, int height, int width, const Rectangle& rectangle) {
  const Rectangle wide = rectangle.grown(0.5);
  double x0 = width - 1, x1 = 0, y0 = height - 1, y1 = 0;
  for (const Point& p : wide.corners()) {
    x0 = std::min(x0, p.x), x1 = std::max(x1, p.x);
    y0 = std::min(y0, p.y), y1 = std::max(y1, p.y);
  }
  const int left = std::max(0, static_cast<int>(std::ceil(x0))), top = std::max(0, static_cast<int>(std::ceil(y0)));
  const int right = std::min(width - 1, static_cast<int>(std::floor(x1)));
  const int bottom = std::min(height - 1, static_cast<int>(std::floor(y1)));
  double sum = 0;
  int64_t count = 0;
  for (int y = top; y <= bottom; ++y) {
    for (int x = left; x <= right; ++x) {
      const double dx = x - wide.corner.x, dy = y - wide.corner.y;
      const double along = dx * wide.u.x + dy * wide.u.y, across = dx * wide.v.x + dy * wide.v.y;
      constexpr double kSlack = 1e-9;  // corners of axis-aligned boxes count whatever the rounding
      if (along < -kSlack || along > wide.length_u + kSlack || across < -kSlack || across > wide.length_v + kSlack) {
        continue;
      }
      sum += map[static_cast<size_t>(y) * width + x];
      ++count;
    }
  }
  return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
}

}  // namespace

std::vector<TextBox> dbnet_boxes(const float* map, int height, int width, const DbnetOptions& options) {
  Mask mask = threshold(map, height, width, options);
  std::vector<std::pair<int, int>> stack;
  std::vector<TextBox> boxes;
  int regions = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (mask.at(y, x) == 0) continue;
      const Rectangle rectangle = rectangle_of(take_region(&mask, y, x, &stack));
      if (++regions > kMaxRegions) return boxes;
      if (std::min(rectangle.length_u, rectangle.length_v) < kLeastSidePx) continue;
      const float score = mean_inside(map, height, width, rectangle);
      if (!(score >= options.box_threshold)) continue;
      const double area = rectangle.length_u * rectangle.length_v;
      const double distance = area * options.unclip_ratio / (2 * (rectangle.length_u + rectangle.length_v));
      const Rectangle grown = rectangle.grown(distance);
      if (std::min(grown.length_u, grown.length_v) < kLeastSidePx + 2) continue;
      boxes.push_back({clockwise_from_top_left(grown.corners()), score});
    }
  }
  return boxes;
}

}  // namespace edgekit::text
