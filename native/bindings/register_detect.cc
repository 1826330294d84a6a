// edgekit._native: detector outputs to candidates, and suppression (kernels/nms). The GIL is released while computing.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/released_gil.h"
#include "kernels/nms/nms.h"

namespace py = pybind11;

namespace edgekit {
namespace {

using Floats = py::array_t<float, py::array::c_style>;
using Ids = py::array_t<int32_t, py::array::c_style>;

void expect(bool condition, const char* what) {
  if (!condition) throw py::value_error(what);
}

// Runs a decoder without the GIL and hands its candidates to numpy: boxes [n, 4], scores [n], class ids [n].
template <typename Decode>
py::tuple decoded(Decode decode) {
  nms::Candidates found;
  {
    const ReleasedGil released;
    decode(&found);
  }
  const py::ssize_t count = static_cast<py::ssize_t>(found.size());
  return py::make_tuple(Floats({count, py::ssize_t{4}}, found.boxes_xyxy.data()), Floats(count, found.scores.data()),
                        Ids(count, found.class_ids.data()));
}

py::tuple decode_yolov8(const Floats& output, float threshold) {
  expect(output.ndim() == 2 && output.shape(0) > 4, "expected [4 + classes, n]");
  const int classes = static_cast<int>(output.shape(0)) - 4;
  return decoded([&, data = output.data(), n = output.shape(1)](nms::Candidates* out) {
    nms::yolov8_candidates(data, classes, n, threshold, out);
  });
}

py::tuple decode_yolov8_head(const Floats& head, int stride, int bins, float threshold) {
  expect(bins >= 1 && bins <= 1024, "bins must be 1..1024");
  expect(head.ndim() == 3 && head.shape(0) > 4 * bins, "expected [4 * bins + classes, height, width]");
  const nms::HeadShape shape{static_cast<int>(head.shape(0)) - 4 * bins, static_cast<int>(head.shape(1)),
                             static_cast<int>(head.shape(2)), stride};
  return decoded([&, data = head.data()](nms::Candidates* out) {
    nms::yolov8_head_candidates(data, shape, bins, threshold, out);
  });
}

py::tuple decode_yolov5(const Floats& output, float threshold) {
  expect(output.ndim() == 2 && output.shape(1) > 5, "expected [n, 5 + classes]");
  const int classes = static_cast<int>(output.shape(1)) - 5;
  return decoded([&, data = output.data(), n = output.shape(0)](nms::Candidates* out) {
    nms::yolov5_candidates(data, classes, n, threshold, out);
  });
}

py::tuple decode_yolov5_head(const Floats& head, const std::vector<float>& anchors_wh, int stride, float threshold) {
  const py::ssize_t anchors = static_cast<py::ssize_t>(anchors_wh.size() / 2);
  const bool channels_first = head.ndim() == 3;
  expect(channels_first || head.ndim() == 4,
         "expected [anchors * (5 + classes), h, w] or [anchors, h, w, 5 + classes]");
  expect(anchors >= 1 && head.shape(0) % anchors == 0, "the head doesn't fit the number of anchors");
  const py::ssize_t values = channels_first ? head.shape(0) / anchors : head.shape(3);
  expect(values > 5 && (channels_first || head.shape(0) == anchors), "the head doesn't fit the number of anchors");
  const nms::HeadShape shape{static_cast<int>(values) - 5, static_cast<int>(head.shape(1)),
                             static_cast<int>(head.shape(2)), stride};
  return decoded([&, data = head.data()](nms::Candidates* out) {
    nms::yolov5_head_candidates(data, shape, anchors_wh, channels_first, threshold, out);
  });
}

py::tuple decode_ssd(const Floats& codes, const Floats& scores, const Floats& anchors, std::pair<int, int> input_hw,
                     std::pair<float, float> variances, float threshold) {
  expect(codes.ndim() == 2 && codes.shape(1) == 4, "expected box codes [n, 4]");
  expect(scores.ndim() == 2 && scores.shape(0) == codes.shape(0) && scores.shape(1) >= 2,
         "expected scores [n, classes], the background first");
  expect(anchors.size() == 0 || anchors.size() == codes.size(), "expected one anchor a box, or none");
  const nms::SsdShape shape{static_cast<int>(scores.shape(1)),
                            codes.shape(0),
                            input_hw.first,
                            input_hw.second,
                            variances.first,
                            variances.second};
  const float* anchor_data = anchors.size() == 0 ? nullptr : anchors.data();
  return decoded([&, code_data = codes.data(), score_data = scores.data()](nms::Candidates* out) {
    nms::ssd_candidates(code_data, score_data, anchor_data, shape, threshold, out);
  });
}

py::array_t<int64_t> suppress(const Floats& boxes, const Floats& scores, const Ids& class_ids, float iou_threshold,
                              int max_detections, bool class_agnostic) {
  expect(boxes.ndim() == 2 && boxes.shape(1) == 4, "expected boxes [n, 4]");
  expect(scores.ndim() == 1 && scores.shape(0) == boxes.shape(0), "expected one score a box");
  expect(class_ids.ndim() == 1 && class_ids.shape(0) == boxes.shape(0), "expected one class id a box");
  const nms::NmsOptions options{iou_threshold, max_detections, class_agnostic};
  std::vector<int64_t> kept;
  {
    const ReleasedGil released;
    kept = nms::suppress(boxes.data(), scores.data(), class_ids.data(), boxes.shape(0), options);
  }
  return py::array_t<int64_t>(static_cast<py::ssize_t>(kept.size()), kept.data());
}

}  // namespace

void register_detect(py::module_& module) {
  module.def("decode_yolov8", &decode_yolov8, py::arg("output"), py::arg("threshold"));
  module.def("decode_yolov8_head", &decode_yolov8_head, py::arg("head"), py::arg("stride"), py::arg("bins"),
             py::arg("threshold"));
  module.def("decode_yolov5", &decode_yolov5, py::arg("output"), py::arg("threshold"));
  module.def("decode_yolov5_head", &decode_yolov5_head, py::arg("head"), py::arg("anchors_wh"), py::arg("stride"),
             py::arg("threshold"));
  module.def("decode_ssd", &decode_ssd, py::arg("codes"), py::arg("scores"), py::arg("anchors"), py::arg("input_hw"),
             py::arg("variances"), py::arg("threshold"));
  module.def("nms", &suppress, py::arg("boxes"), py::arg("scores"), py::arg("class_ids"), py::arg("iou_threshold"),
             py::arg("max_detections"), py::arg("class_agnostic"));
}

}  // namespace edgekit
