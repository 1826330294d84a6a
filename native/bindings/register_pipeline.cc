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
#include "bindings/python_session.h"
#include "bindings/released_gil.h"
#include "bindings/status_error.h"
#include "pipeline/frame_pipeline.h"
#include "pipeline/infer_stage.h"

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
                  double timeout_s, size_t plan) {
    // The owner is what the planes and the pass need to stay alive, and what take() hands on.
    py::object owner = py::make_tuple(token, py::cast(planes), py::cast(&pass));
    const FramePipeline::Job job{pass.bind(planes), pass.pass(), owner.ptr(), plan};
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

  // From now on a thread of the core runs the session on what take() would give.
  void infer_with(const py::object& session) {
    if (stage_ != nullptr) throw py::value_error("inference is running already");
    session_ = session;
    stage_ = std::make_unique<InferStage>(*pipeline_, session.cast<PySession&>().session(), kFinishedFrames);
  }

  // (outputs, token, (pushed_ns, preprocess begin and end, inference begin and end), dropped), False when none came in
  // time, None at the end.
  py::object take_result(double timeout_s) {
    if (stage_ == nullptr) throw py::value_error("infer_with() comes first");
    InferStage::Done done;
    FramePipeline::Outcome outcome{};
    {
      const ReleasedGil released;
      outcome = stage_->take(nanoseconds(timeout_s), &done);
    }
    if (outcome == FramePipeline::Outcome::kTimeout) return py::bool_(false);
    if (outcome == FramePipeline::Outcome::kClosed) {
      raise_on_error(stage_->status());
      return py::none();
    }
    const auto owner = py::reinterpret_steal<py::tuple>(static_cast<PyObject*>(done.frame.owner));
    PySession& session = session_.cast<PySession&>();
    auto lease = std::make_unique<OutputPool::Lease>(std::move(done.outputs));
    std::byte* data = lease->data();
    const py::capsule base(lease.release(), [](void* held) { delete static_cast<OutputPool::Lease*>(held); });
    const size_t plan = done.frame.plan;
    const py::dict outputs =
        session.view_outputs(plan, data, InferStage::offsets(session.session().program().plans()[plan]), base);
    const py::tuple times = py::make_tuple(done.frame.pushed_ns, done.frame.preprocess_begin_ns,
                                           done.frame.preprocess_end_ns, done.begin_ns, done.end_ns);
    return py::make_tuple(outputs, owner[0], times, done.dropped);
  }

  void close() {
    std::vector<void*> left;
    {
      const ReleasedGil released;
      pipeline_->close(&left);
      if (stage_ != nullptr) stage_->close(&left);
    }
    free_all(left);
  }

  int64_t dropped() const { return pipeline_->dropped(); }

 private:
  static void free_all(const std::vector<void*>& owners) {
    for (void* owner : owners) py::reinterpret_steal<py::object>(static_cast<PyObject*>(owner));
  }

  static constexpr size_t kFinishedFrames = 1;  // the next frame is inferred while one waits for post-processing

  std::unique_ptr<FramePipeline> pipeline_;
  py::object session_;  // of stage_
  std::unique_ptr<InferStage> stage_;
};

}  // namespace

void register_pipeline(py::module_& module) {
  py::class_<PyFramePipeline>(module, "FramePipeline", "Ingress, preprocess thread and slots of a stream.")
      .def(py::init<int, int, bool>(), py::arg("slots"), py::arg("ingress"), py::arg("latest"))
      .def("push", &PyFramePipeline::push, py::arg("preprocessor"), py::arg("planes"), py::arg("token"),
           py::arg("timeout_s"), py::arg("plan") = 0)
      .def("infer_with", &PyFramePipeline::infer_with, py::arg("session"))
      .def("take_result", &PyFramePipeline::take_result, py::arg("timeout_s"))
      .def("end", &PyFramePipeline::end)
      .def("take", &PyFramePipeline::take, py::arg("timeout_s"))
      .def("release", &PyFramePipeline::release, py::arg("slot"))
      .def("close", &PyFramePipeline::close)
      .def_property_readonly("dropped", &PyFramePipeline::dropped);
}

}  // namespace edgekit
