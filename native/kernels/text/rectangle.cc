#include "kernels/text/rectangle.h"

#include <algorithm>
#include <cmath>

namespace edgekit::text {
namespace {

double cross(const Point& o, const Point& a, const Point& b) {
  return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

double dot(const Point& a, const Point& b) { return a.x * b.x + a.y * b.y; }

struct Span {
  double low, high;
};

// Least and greatest product of the hull's points with an axis.
Span span(const std::vector<Point>& hull, const Point& axis) {
  double low = dot(hull[0], axis), high = low;
  for (const Point& p : hull) {
    const double along = dot(p, axis);
    low = std::min(low, along);
    high = std::max(high, along);
  }
  return {low, high};
}

}  // namespace

std::array<Point, 4> Rectangle::corners() const {
  const auto at = [&](double a, double b) { return Point{corner.x + a * u.x + b * v.x, corner.y + a * u.y + b * v.y}; };
  return {at(0, 0), at(length_u, 0), at(length_u, length_v), at(0, length_v)};
}

Rectangle Rectangle::grown(double distance) const {
  const Point moved{corner.x - distance * (u.x + v.x), corner.y - distance * (u.y + v.y)};
  return {moved, u, v, length_u + 2 * distance, length_v + 2 * distance};
}

std::vector<Point> convex_hull(std::vector<Point>* points) {
  const auto before = [](const Point& a, const Point& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; };
  std::sort(points->begin(), points->end(), before);
  const auto same = [](const Point& a, const Point& b) { return a.x == b.x && a.y == b.y; };
  points->erase(std::unique(points->begin(), points->end(), same), points->end());
  if (points->size() < 3) return *points;
  std::vector<Point> hull;
  const auto extend = [&](const Point& p, size_t base) {
    while (hull.size() >= base + 2 && cross(hull[hull.size() - 2], hull.back(), p) <= 0) hull.pop_back();
    hull.push_back(p);
  };
  for (const Point& p : *points) extend(p, 0);
  hull.pop_back();
  const size_t base = hull.size();
  for (auto p = points->rbegin(); p != points->rend(); ++p) extend(*p, base);
  hull.pop_back();
  return hull;
}

Rectangle smallest_rectangle(const std::vector<Point>& hull) {
  Rectangle best{hull[0], {1, 0}, {0, 1}, 0, 0};
  double best_area = INFINITY;
  for (size_t i = 0; i < hull.size(); ++i) {
    const Point& a = hull[i];
    const Point& b = hull[(i + 1) % hull.size()];
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    if (!(length > 0)) continue;
    const Point u{(b.x - a.x) / length, (b.y - a.y) / length};
    const Point v{-u.y, u.x};
    const auto [low_u, high_u] = span(hull, u);
    const auto [low_v, high_v] = span(hull, v);
    const double area = (high_u - low_u) * (high_v - low_v);
    if (area >= best_area) continue;
    best_area = area;
    const Point corner{low_u * u.x + low_v * v.x, low_u * u.y + low_v * v.y};
    best = {corner, u, v, high_u - low_u, high_v - low_v};
  }
  return best;
}

std::array<Point, 4> clockwise_from_top_left(std::array<Point, 4> corners) {
  // The two leftmost corners are the left side; on each side the upper corner comes first.
  std::stable_sort(corners.begin(), corners.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  if (corners[0].y > corners[1].y) std::swap(corners[0], corners[1]);
  if (corners[2].y > corners[3].y) std::swap(corners[2], corners[3]);
  return {corners[0], corners[2], corners[3], corners[1]};
}

}  // namespace edgekit::text
