// edgekit._native: text boxes, CTC paths and straightened crops (kernels/text). The GIL is released while computing.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <array>
#include <vector>

#include "bindings/released_gil.h"
#include "bindings/status_error.h"
#include "kernels/text/ctc.h"
#include "kernels/text/dbnet.h"
#include "kernels/text/warp.h"

namespace py = pybind11;

namespace edgekit {
namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Bytes = py::array_t<uint8_t, py::array::c_style>;

py::tuple dbnet_boxes(const Floats& map, float pixel_threshold, float box_threshold, float unclip_ratio, bool dilate) {
  if (map.ndim() != 2) throw py::value_error("expected a map [height, width]");
  const int height = static_cast<int>(map.shape(0)), width = static_cast<int>(map.shape(1));
  std::vector<text::TextBox> boxes;
  {
    const ReleasedGil released;
    boxes = text::dbnet_boxes(map.data(), height, width, {pixel_threshold, box_threshold, unclip_ratio, dilate});
  }
  const py::ssize_t count = static_cast<py::ssize_t>(boxes.size());
  Floats corners({count, py::ssize_t{4}, py::ssize_t{2}});
  Floats scores(count);
  for (py::ssize_t i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k) {
      corners.mutable_at(i, k, 0) = static_cast<float>(boxes[i].corners[k].x);
      corners.mutable_at(i, k, 1) = static_cast<float>(boxes[i].corners[k].y);
    }
    scores.mutable_at(i) = boxes[i].score;
  }
  return py::make_tuple(corners, scores);
}

py::tuple ctc_greedy(const Floats& rows, int blank) {
  if (rows.ndim() != 2 || rows.shape(1) < 1) throw py::value_error("expected rows [steps, classes]");
  const int steps = static_cast<int>(rows.shape(0)), classes = static_cast<int>(rows.shape(1));
  text::CtcPath path;
  {
    const ReleasedGil released;
    path = text::ctc_greedy(rows.data(), steps, classes, blank);
  }
  const py::ssize_t count = static_cast<py::ssize_t>(path.class_ids.size());
  return py::make_tuple(py::array_t<int32_t>(count, path.class_ids.data()), Floats(count, path.scores.data()));
}

Bytes warp_quad(const Bytes& image, const py::array_t<double, py::array::c_style | py::array::forcecast>& corners,
                int height, int width) {
  if (image.ndim() != 3 || image.shape(2) > 4) throw py::value_error("expected an image [height, width, channels]");
  if (corners.ndim() != 2 || corners.shape(0) != 4 || corners.shape(1) != 2) {
    throw py::value_error("expected corners [4, 2]");
  }
  constexpr int kMaxSide = 32768;
  if (image.size() == 0 || height < 1 || width < 1 || height > kMaxSide || width > kMaxSide) {
    throw py::value_error("sizes must be 1..32768 pixels");
  }
  Bytes out({static_cast<py::ssize_t>(height), static_cast<py::ssize_t>(width), image.shape(2)});
  std::array<text::Point, 4> quad;
  for (int k = 0; k < 4; ++k) quad[k] = {corners.at(k, 0), corners.at(k, 1)};
  const text::Picture picture{image.data(), static_cast<int>(image.shape(0)), static_cast<int>(image.shape(1)),
                              static_cast<int>(image.shape(2)), image.strides(0)};
  uint8_t* pixels = out.mutable_data();
  const Status status = [&] {
    const ReleasedGil released;
    return text::warp_quad(picture, quad, height, width, pixels);
  }();
  raise_on_error(status);
  return out;
}

}  // namespace

void register_text(py::module_& module) {
  module.def("dbnet_boxes", &dbnet_boxes, py::arg("map"), py::arg("pixel_threshold"), py::arg("box_threshold"),
             py::arg("unclip_ratio"), py::arg("dilate"));
  module.def("ctc_greedy", &ctc_greedy, py::arg("rows"), py::arg("blank"));
  module.def("warp_quad", &warp_quad, py::arg("image"), py::arg("corners"), py::arg("height"), py::arg("width"));
}

}  // namespace edgekit
