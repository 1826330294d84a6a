// DBNet's probability map to text boxes (Liao et al., "Real-time Scene Text Detection with Differentiable
// Binarization", 2020), with PaddleOCR's choices: 8-connected regions, least rectangle, fast score.
#ifndef EDGEKIT_KERNELS_TEXT_DBNET_H_
#define EDGEKIT_KERNELS_TEXT_DBNET_H_

#include <array>
#include <vector>

#include "kernels/text/rectangle.h"

namespace edgekit::text {

struct DbnetOptions {
  float pixel_threshold = 0.3f;  // a pixel above it is text
  float box_threshold = 0.5f;    // least mean probability inside a box
  float unclip_ratio = 1.6f;     // boxes grow by area * ratio / perimeter
  bool dilate = true;            // regions grow by one pixel to the right and below, which joins broken letters
};

// Regions looked at, in the order of their first pixels, and the least side in map pixels before growing.
constexpr int kMaxRegions = 1000;
constexpr double kLeastSidePx = 3;

struct TextBox {
  std::array<Point, 4> corners;  // map pixels, clockwise from the top left
  float score;                   // mean probability
};

// map: height x width probabilities, dense.
std::vector<TextBox> dbnet_boxes(const float* map, int height, int width, const DbnetOptions& options);

}  // namespace edgekit::text

#endif  // EDGEKIT_KERNELS_TEXT_DBNET_H_
