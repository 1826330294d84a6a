#include "bindings/python_session.h"

#include <algorithm>

#include "bindings/released_gil.h"
#include "bindings/status_error.h"

namespace py = pybind11;

namespace edgekit {
namespace {

bool same_dtype(const py::dtype& a, const py::dtype& b) {
  return a.ptr() == b.ptr() || (a.kind() == b.kind() && a.itemsize() == b.itemsize() && a.byteorder() == b.byteorder());
}

std::string describe(const py::dtype& dtype, const py::ssize_t* shape, size_t rank) {
  std::string text = py::str(dtype).cast<std::string>() + "[";
  for (size_t i = 0; i < rank; ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

[[noreturn]] void fail_input(const std::string& name, const std::string& problem) {
  raise_on_error({StatusCode::kInvalidInput, "input '" + name + "': " + problem});
  throw py::value_error(problem);
}

// A borrowed value of a dict, null when it is not there.
py::handle lookup(const py::dict& dict, const py::str& key) {
  PyObject* value = PyDict_GetItemWithError(dict.ptr(), key.ptr());
  if (value == nullptr && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return value;
}

}  // namespace

py::dtype numpy_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return py::dtype::of<float>();
    case Dtype::kS8:
      return py::dtype::of<int8_t>();
    case Dtype::kU8:
      return py::dtype::of<uint8_t>();
    case Dtype::kI32:
      return py::dtype::of<int32_t>();
    case Dtype::kI64:
      return py::dtype::of<int64_t>();
    case Dtype::kBool:
      return py::dtype::of<bool>();
  }
  throw py::value_error("unknown dtype");
}

std::vector<py::ssize_t> shape_of(const TensorView& view) { return {view.dims, view.dims + view.rank}; }

py::str python_name(std::string_view name) { return {name.data(), name.size()}; }

bool PySession::Port::fits(const py::array& array) const {
  return static_cast<size_t>(array.ndim()) == shape.size() && std::equal(shape.begin(), shape.end(), array.shape());
}

PySession::PySession(std::shared_ptr<const Program> program, int threads, Session::Tuning tuning) {
  const std::vector<Plan>& plans = program->plans();
  const auto make_ports = [](const Plan& plan, const std::vector<PlanValue>& values) {
    std::vector<Port> ports;
    for (const PlanValue& value : values) {
      const TensorView& view = plan.tensors[value.tensor];
      ports.push_back({python_name(value.name), numpy_dtype(view.dtype), shape_of(view)});
    }
    return ports;
  };
  for (const Plan& plan : plans) ports_.push_back({make_ports(plan, plan.inputs), make_ports(plan, plan.outputs)});
  Result<std::unique_ptr<Session>> session = Session::create(std::move(program), threads, std::move(tuning));
  raise_on_error(session.status());
  session_ = std::move(session.value());
}

std::pair<py::dict, std::vector<int64_t>> PySession::run_timed(const py::dict& feeds, std::optional<size_t> plan) {
  std::vector<int64_t> times;
  py::dict outputs = run_once(feeds, plan, &times);
  return {std::move(outputs), std::move(times)};
}

std::vector<std::string> PySession::kernels(size_t plan) const {
  if (plan >= ports_.size()) throw py::index_error("no such plan");
  return session_->kernels(plan);
}

py::dict PySession::run_once(const py::dict& feeds, std::optional<size_t> plan, std::vector<int64_t>* times) {
  const Session::Use use(*session_);
  raise_on_error(use.status());
  raise_on_error(session_->select_plan(plan.has_value() ? *plan : matching_plan(feeds)));
  const std::vector<py::array> alive = bind_inputs(feeds);
  py::dict outputs = bind_outputs();
  const Status status = [&] {
    const ReleasedGil released;
    return times == nullptr ? session_->run() : session_->run_timed(times);
  }();
  raise_on_error(status);
  return outputs;
}

// The first plan whose input shapes are those of the feeds; the first plan when there is none, whose shapes the
// message will then name.
size_t PySession::matching_plan(const py::dict& feeds) const {
  if (ports_.size() == 1) return 0;
  const auto fits = [&](const Port& port) {
    const py::handle feed = lookup(feeds, port.name);
    return feed && py::isinstance<py::array>(feed) && port.fits(py::reinterpret_borrow<py::array>(feed));
  };
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (std::all_of(ports_[i].inputs.begin(), ports_[i].inputs.end(), fits)) return i;
  }
  return 0;
}

// Binds contiguous, aligned arrays as they are and copies of the others. The result must live until the run ends.
std::vector<py::array> PySession::bind_inputs(const py::dict& feeds) {
  const std::vector<Port>& inputs = ports().inputs;
  std::vector<py::array> alive;
  alive.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const py::handle feed = lookup(feeds, inputs[i].name);
    if (!feed) fail_input(inputs[i].name, "input is missing");
    alive.push_back(dense(inputs[i], feed));
    raise_on_error(session_->bind_input(i, alive.back().data(), static_cast<uint64_t>(alive.back().nbytes())));
  }
  if (feeds.size() != inputs.size()) {
    for (const auto& item : feeds) {
      const std::string name = py::str(item.first).cast<std::string>();
      if (Plan::find(session_->plan().inputs, name) == nullptr) fail_input(name, "the model has no such input");
    }
  }
  return alive;
}

py::array PySession::dense(const Port& port, py::handle feed) const {
  if (!py::isinstance<py::array>(feed)) fail_input(port.name, "is not a numpy array");
  py::array array = py::reinterpret_borrow<py::array>(feed);
  if (!same_dtype(array.dtype(), port.dtype) || !port.fits(array)) {
    fail_input(port.name, "wrong dtype or shape (got " +
                              describe(array.dtype(), array.shape(), static_cast<size_t>(array.ndim())) +
                              ", expected " + describe(port.dtype, port.shape.data(), port.shape.size()) + ")");
  }
  constexpr int kReady = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if ((array.flags() & kReady) == kReady) return array;
  return array.attr("copy")("C");
}

py::dict PySession::view_outputs(size_t plan, std::byte* data, const std::vector<uint64_t>& offsets, py::handle base) {
  py::dict outputs;
  const std::vector<Port>& ports = ports_[plan].outputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    outputs[ports[i].name] = py::array(ports[i].dtype, ports[i].shape, data + offsets[i], base);
  }
  return outputs;
}

py::dict PySession::bind_outputs() {
  py::dict outputs;
  const std::vector<Port>& ports = this->ports().outputs;
  for (size_t i = 0; i < ports.size(); ++i) {
    py::array array(ports[i].dtype, ports[i].shape);
    raise_on_error(session_->bind_output(i, array.mutable_data(), static_cast<uint64_t>(array.nbytes())));
    outputs[ports[i].name] = std::move(array);
  }
  return outputs;
}

}  // namespace edgekit
