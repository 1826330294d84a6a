// Smallest rectangles around points.
#ifndef EDGEKIT_KERNELS_TEXT_RECTANGLE_H_
#define EDGEKIT_KERNELS_TEXT_RECTANGLE_H_

#include <array>
#include <vector>

namespace edgekit::text {

struct Point {
  double x, y;
};

// A rectangle at any angle: a corner and its two sides, u and v at right angles.
struct Rectangle {
  Point corner;
  Point u, v;  // unit vectors
  double length_u, length_v;
  std::array<Point, 4> corners() const;
  Rectangle grown(double distance) const;  // all sides moved outwards
};

// Convex hull in counter-clockwise order (Andrew's monotone chain). Sorts the points.
std::vector<Point> convex_hull(std::vector<Point>* points);

// The rectangle of least area around a hull; one of its sides lies on a side of the hull (Freeman and Shapira, 1975).
// A hull of one point or of collinear points gives a rectangle with sides of 0.
Rectangle smallest_rectangle(const std::vector<Point>& hull);

// Corners in the order top left, top right, bottom right, bottom left, y downwards.
std::array<Point, 4> clockwise_from_top_left(std::array<Point, 4> corners);

}  // namespace edgekit::text

#endif  // EDGEKIT_KERNELS_TEXT_RECTANGLE_H_
