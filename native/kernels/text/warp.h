// Cuts a quadrilateral out of a picture and straightens it.
#ifndef EDGEKIT_KERNELS_TEXT_WARP_H_
#define EDGEKIT_KERNELS_TEXT_WARP_H_

#include <array>
#include <cstdint>

#include "core/status.h"
#include "kernels/text/rectangle.h"

namespace edgekit::text {

struct Picture {
  const uint8_t* pixels;  // channels interleaved
  int height, width, channels;
  int64_t row_stride;  // in bytes
};

// Fills out (out_height x out_width, dense, as many channels) with the quadrilateral whose corners, clockwise from the
// top left, are given in continuous source pixels; the projective map of Heckbert, "Fundamentals of Texture Mapping"
// (1989), bilinear at pixel centres, edge pixels repeated outside. kInvalidInput for a degenerate quadrilateral.
Status warp_quad(const Picture& picture, const std::array<Point, 4>& corners, int out_height, int out_width,
                 uint8_t* out);

}  // namespace edgekit::text

#endif  // EDGEKIT_KERNELS_TEXT_WARP_H_
