// edgekit._native.FramePipeline: native/pipeline for Python. Owners of frames are Python objects; they are released
// here, with the GIL, and never by a thread of the pipeline.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "bindings/bound_preprocessor.h"
#include "bindings/released_gil.h"
#include "bindings/status_error.h"
#include "pipeline/frame_pipeline.h"

namespace py = pybind11;

namespace edgekit {
namespace {

int64_t nanoseconds(double seconds) {
  constexpr double kMost = 1e6;  // eleven days; larger and infinite waits count as that
  return static_cast<int64_t>(std::min(std::max(seconds, 0.0), kMost) * 1e9);
}

class PyFramePipeline {
 public:
  PyFramePipeline(int slots, int ingress, bool latest) {
    if (slots < 1 || slots > 64 || ingress < 1 || ingress > 1024) {
      throw py::value_error("slots must be 1..64 and ingress 1..1024");
    }
    pipeline_ = std::make_unique<FramePipeline>(FramePipeline::Options{slots, ingress, latest});
  }
  ~PyFramePipeline() { close(); }
  PyFramePipeline(const PyFramePipeline&) = delete;
  PyFramePipeline& operator=(const PyFramePipeline&) = delete;

  // True: taken. False: no room in time. None: closed.
  py::object push(const BoundPreprocessor& pass, const std::vector<py::array>& planes, const py::object& token,
                  double timeout_s) {
    // The owner is what the planes and the pass need to stay alive, and what take() hands on.
    py::object owner = py::make_tuple(token, py::cast(planes), py::cast(&pass));
    const FramePipeline::Job job{pass.bind(planes), pass.pass(), owner.ptr()};
    std::vector<void*> dropped;
    FramePipeline::Outcome outcome{};
    {
      const ReleasedGil released;
      outcome = pipeline_->push(job, nanoseconds(timeout_s), &dropped);
    }
    if (outcome == FramePipeline::Outcome::kOk) owner.release();
    free_all(dropped);
    if (outcome == FramePipeline::Outcome::kClosed) return py::none();
    return py::bool_(outcome == FramePipeline::Outcome::kOk);
  }

  void end() { pipeline_->end(); }

  // (slot, bytes, token, pushed_ns, begin_ns, end_ns), False when none came in time, None at the end.
  py::object take(double timeout_s) {
    FramePipeline::Taken taken;
    FramePipeline::Outcome outcome{};
    {
      const ReleasedGil released;
      outcome = pipeline_->take(nanoseconds(timeout_s), &taken);
    }
    if (pipeline_->out_of_memory()) raise_on_error({StatusCode::kOutOfMemory, "no memory for a frame of the pipeline"});
    if (outcome == FramePipeline::Outcome::kTimeout) return py::bool_(false);
    if (outcome == FramePipeline::Outcome::kClosed) return py::none();
    const auto owner = py::reinterpret_steal<py::tuple>(static_cast<PyObject*>(taken.owner));
    // The array borrows the slot: its base is this pipeline, so the memory outlives it whatever the caller does.
    const py::array_t<uint8_t> bytes(static_cast<py::ssize_t>(taken.bytes), reinterpret_cast<uint8_t*>(taken.data),
                                     py::cast(this));
    return py::make_tuple(taken.slot, bytes, owner[0], taken.pushed_ns, taken.preprocess_begin_ns,
                          taken.preprocess_end_ns);
  }

  void release(int slot) { pipeline_->release(slot); }

  void close() {
    std::vector<void*> left;
    {
      const ReleasedGil released;
      pipeline_->close(&left);
    }
    free_all(left);
  }

  int64_t dropped() const { return pipeline_->dropped(); }

 private:
  static void free_all(const std::vector<void*>& owners) {
    for (void* owner : owners) py::reinterpret_steal<py::object>(static_cast<PyObject*>(owner));
  }

  std::unique_ptr<FramePipeline> pipeline_;
};

}  // namespace

void register_pipeline(py::module_& module) {
  py::class_<PyFramePipeline>(module, "FramePipeline", "Ingress, preprocess thread and slots of a stream.")
      .def(py::init<int, int, bool>(), py::arg("slots"), py::arg("ingress"), py::arg("latest"))
      .def("push", &PyFramePipeline::push, py::arg("preprocessor"), py::arg("planes"), py::arg("token"),
           py::arg("timeout_s"))
      .def("end", &PyFramePipeline::end)
      .def("take", &PyFramePipeline::take, py::arg("timeout_s"))
      .def("release", &PyFramePipeline::release, py::arg("slot"))
      .def("close", &PyFramePipeline::close)
      .def_property_readonly("dropped", &PyFramePipeline::dropped);
}

}  // namespace edgekit
