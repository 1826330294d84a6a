// edgekit._native.PreprocessConfig and Preprocessor: the fused pass of kernels/preprocess for Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/bound_preprocessor.h"
#include "bindings/released_gil.h"
#include "core/tensor.h"
#include "kernels/preprocess/preprocess.h"

namespace py = pybind11;

namespace edgekit {

BoundPreprocessor::BoundPreprocessor(const preprocess::Config& config) : config_(config) {
  auto created = preprocess::Preprocessor::create(config);
  if (!created.is_ok()) throw py::value_error(created.status().message());
  pass_ = std::move(created.value());
}

preprocess::Image BoundPreprocessor::bind(const std::vector<py::array>& planes) const {
  if (static_cast<int>(planes.size()) != preprocess::plane_count(config_.format)) {
    throw py::value_error("expected " + std::to_string(preprocess::plane_count(config_.format)) + " planes, got " +
                          std::to_string(planes.size()));
  }
  preprocess::Image image;
  for (size_t i = 0; i < planes.size(); ++i) bind_plane(static_cast<int>(i), planes[i], image);
  return image;
}

void BoundPreprocessor::run(const std::vector<py::array>& planes, py::array output) {
  const preprocess::Image image = bind(planes);
  const char kind = config_.dtype == Dtype::kF32 ? 'f' : config_.dtype == Dtype::kU8 ? 'u' : 'i';
  if (output.dtype().kind() != kind || output.itemsize() != dtype_bytes(config_.dtype)) {
    throw py::value_error("output: wrong dtype");
  }
  if ((output.flags() & py::array::c_style) == 0 || static_cast<size_t>(output.nbytes()) != pass_->output_bytes()) {
    throw py::value_error("output: expected a C-contiguous array of " + std::to_string(pass_->output_bytes()) +
                          " bytes");
  }
  void* data = output.mutable_data();  // throws when the array is read-only
  const ReleasedGil released;
  pass_->run(image, data);
}

void BoundPreprocessor::bind_plane(int index, const py::array& array, preprocess::Image& image) const {
  const int row_bytes = preprocess::plane_row_bytes(config_.format, index, config_.source_width);
  const int rows = preprocess::plane_rows(config_.format, index, config_.source_height);
  const std::string where = "plane " + std::to_string(index) + ": ";
  if (!py::isinstance<py::array_t<uint8_t>>(array)) throw py::value_error(where + "expected dtype uint8");
  if (array.ndim() < 2 || array.shape(0) < rows) {
    throw py::value_error(where + "expected at least " + std::to_string(rows) + " rows");
  }
  py::ssize_t dense_bytes = 1;
  for (py::ssize_t axis = array.ndim() - 1; axis >= 1; --axis) {
    if (array.shape(axis) != 1 && array.strides(axis) != dense_bytes) {
      throw py::value_error(where + "the bytes of a row must lie one after the other");
    }
    dense_bytes *= array.shape(axis);
  }
  if (dense_bytes < row_bytes) {
    throw py::value_error(where + "expected at least " + std::to_string(row_bytes) + " bytes a row");
  }
  image.planes[index] = static_cast<const uint8_t*>(array.data());
  image.row_strides[index] = array.strides(0);
}

namespace {

using preprocess::Config;

// A float[3] member as a Python tuple.
template <float (Config::*kMember)[3]>
void def_triple(py::class_<Config>& config, const char* name) {
  config.def_property(
      name, [](const Config& c) { return py::make_tuple((c.*kMember)[0], (c.*kMember)[1], (c.*kMember)[2]); },
      [](Config& c, const std::vector<float>& values) {
        if (values.empty() || values.size() > 3) throw py::value_error("expected 1 to 3 values");
        for (size_t i = 0; i < 3; ++i) (c.*kMember)[i] = values[i < values.size() ? i : 0];
      });
}

template <typename T>
T by_name(const std::string& name, const std::vector<std::pair<const char*, T>>& names) {
  for (const auto& [text, value] : names) {
    if (name == text) return value;
  }
  throw py::value_error("unknown name: " + name);
}

}  // namespace

void register_preprocess(py::module_& module) {
  namespace pre = preprocess;
  py::class_<Config> config(module, "PreprocessConfig",
                            "What one preprocessing pass does; sizes in pixels, see kernels/preprocess/preprocess.h.");
  config.def(py::init<>())
      .def_readwrite("source_width", &Config::source_width)
      .def_readwrite("source_height", &Config::source_height)
      .def_readwrite("crop_x", &Config::crop_x)
      .def_readwrite("crop_y", &Config::crop_y)
      .def_readwrite("crop_width", &Config::crop_width)
      .def_readwrite("crop_height", &Config::crop_height)
      .def_readwrite("resized_width", &Config::resized_width)
      .def_readwrite("resized_height", &Config::resized_height)
      .def_readwrite("offset_x", &Config::offset_x)
      .def_readwrite("offset_y", &Config::offset_y)
      .def_readwrite("output_width", &Config::output_width)
      .def_readwrite("output_height", &Config::output_height)
      .def_readwrite("channels_first", &Config::channels_first)
      .def_readwrite("quant_scale", &Config::quant_scale)
      .def_readwrite("zero_point", &Config::zero_point)
      .def_readwrite("force_scalar", &Config::force_scalar)
      .def("set_format",
           [](Config& c, const std::string& name) {
             c.format = by_name<pre::PixelFormat>(name, {{"rgb", pre::PixelFormat::kRgb},
                                                         {"bgr", pre::PixelFormat::kBgr},
                                                         {"gray", pre::PixelFormat::kGray},
                                                         {"nv12", pre::PixelFormat::kNv12},
                                                         {"i420", pre::PixelFormat::kI420}});
           })
      .def("set_yuv",
           [](Config& c, const std::string& matrix, const std::string& range) {
             c.matrix =
                 by_name<pre::YuvMatrix>(matrix, {{"601", pre::YuvMatrix::kBt601}, {"709", pre::YuvMatrix::kBt709}});
             c.range =
                 by_name<pre::YuvRange>(range, {{"studio", pre::YuvRange::kStudio}, {"full", pre::YuvRange::kFull}});
           })
      .def("set_order",
           [](Config& c, const std::string& name) {
             c.order = by_name<pre::ChannelOrder>(name, {{"rgb", pre::ChannelOrder::kRgb},
                                                         {"bgr", pre::ChannelOrder::kBgr},
                                                         {"gray", pre::ChannelOrder::kGray}});
           })
      .def("set_interpolation",
           [](Config& c, const std::string& name) {
             c.interpolation = by_name<pre::Interpolation>(name, {{"bilinear", pre::Interpolation::kBilinear},
                                                                  {"nearest", pre::Interpolation::kNearest},
                                                                  {"area", pre::Interpolation::kArea}});
           })
      .def("set_dtype", [](Config& c, const std::string& name) {
        c.dtype = by_name<Dtype>(name, {{"float32", Dtype::kF32}, {"uint8", Dtype::kU8}, {"int8", Dtype::kS8}});
      });
  def_triple<&Config::gain>(config, "gain");
  def_triple<&Config::offset>(config, "offset");
  def_triple<&Config::pad>(config, "pad");

  py::class_<BoundPreprocessor>(module, "Preprocessor", "The fused pass for one source size.")
      .def(py::init<const Config&>(), py::arg("config"), "Raises ValueError when the configuration makes no sense.")
      .def("run", &BoundPreprocessor::run, py::arg("planes"), py::arg("output"),
           "Fills output (dense, of the configured dtype and size) from uint8 planes; releases the GIL.")
      .def_property_readonly_static("isa", [](const py::object&) { return preprocess::isa_name(false); });
}

}  // namespace edgekit
