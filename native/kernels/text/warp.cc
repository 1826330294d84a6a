#include "kernels/text/warp.h"

#include <algorithm>
#include <cmath>

namespace edgekit::text {
namespace {

// (s, t) of the unit square -> ((a s + b t + c) / (g s + h t + 1), (d s + e t + f) / (g s + h t + 1)).
struct Projection {
  double a, b, c, d, e, f, g, h;
};

bool square_to_quad(const std::array<Point, 4>& p, Projection* out) {
  const double dx1 = p[1].x - p[2].x, dx2 = p[3].x - p[2].x, dx3 = p[0].x - p[1].x + p[2].x - p[3].x;
  const double dy1 = p[1].y - p[2].y, dy2 = p[3].y - p[2].y, dy3 = p[0].y - p[1].y + p[2].y - p[3].y;
  const double determinant = dx1 * dy2 - dx2 * dy1;
  if (!(std::abs(determinant) > 1e-9)) return false;  // also false for NaN
  const double g = (dx3 * dy2 - dx2 * dy3) / determinant;
  const double h = (dx1 * dy3 - dx3 * dy1) / determinant;
  *out = {p[1].x - p[0].x + g * p[1].x,
          p[3].x - p[0].x + h * p[3].x,
          p[0].x,
          p[1].y - p[0].y + g * p[1].y,
          p[3].y - p[0].y + h * p[3].y,
          p[0].y,
          g,
          h};
  return true;
}

void sample(const Picture& picture, double x, double y, uint8_t* out) {
  x = std::clamp(x, 0.0, picture.width - 1.0);
  y = std::clamp(y, 0.0, picture.height - 1.0);
  const int left = static_cast<int>(x), top = static_cast<int>(y);
  const int right = std::min(left + 1, picture.width - 1), bottom = std::min(top + 1, picture.height - 1);
  const double fx = x - left, fy = y - top;
  const uint8_t* upper = picture.pixels + top * picture.row_stride;
  const uint8_t* lower = picture.pixels + bottom * picture.row_stride;
  for (int c = 0; c < picture.channels; ++c) {
    const auto at = [&](const uint8_t* row, int column) {
      return static_cast<double>(row[column * picture.channels + c]);
    };
    const double above = at(upper, left) * (1 - fx) + at(upper, right) * fx;
    const double below = at(lower, left) * (1 - fx) + at(lower, right) * fx;
    out[c] = static_cast<uint8_t>(above * (1 - fy) + below * fy + 0.5);
  }
}

}  // namespace

Status warp_quad(const Picture& picture, const std::array<Point, 4>& corners, int out_height, int out_width,
                 uint8_t* out) {
  Projection m{};
  if (!square_to_quad(corners, &m)) return {StatusCode::kInvalidInput, "warp: the quadrilateral has no area"};
  for (int y = 0; y < out_height; ++y) {
    const double t = (y + 0.5) / out_height;
    for (int x = 0; x < out_width; ++x) {
      const double s = (x + 0.5) / out_width;
      const double w = m.g * s + m.h * t + 1;
      if (!(std::abs(w) > 1e-9)) return {StatusCode::kInvalidInput, "warp: the quadrilateral folds over itself"};
      const double source_x = (m.a * s + m.b * t + m.c) / w - 0.5, source_y = (m.d * s + m.e * t + m.f) / w - 0.5;
      sample(picture, source_x, source_y, out + (static_cast<int64_t>(y) * out_width + x) * picture.channels);
    }
  }
  return Status::ok();
}

}  // namespace edgekit::text
