// edgekit._native.Program and Session, and what the CPU can do. The GIL is released while loading and running.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/status_error.h"
#include "core/cpu_features.h"
#include "core/thread_pool.h"
#include "engine/program.h"
#include "engine/session.h"

namespace py = pybind11;

namespace edgekit {
namespace {

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

bool same_dtype(const py::dtype& a, const py::dtype& b) {
  return a.kind() == b.kind() && a.itemsize() == b.itemsize() && a.byteorder() == b.byteorder();
}

std::vector<py::ssize_t> shape_of(const TensorView& view) { return {view.dims, view.dims + view.rank}; }

std::string describe(const py::dtype& dtype, const std::vector<py::ssize_t>& shape) {
  std::string text = py::str(dtype).cast<std::string>() + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<py::ssize_t> shape_of(const py::array& array) { return {array.shape(), array.shape() + array.ndim()}; }

std::optional<Isa> isa_of(const std::string& name) {
  if (name.empty()) return std::nullopt;
  Result<Isa> isa = parse_isa(name);
  raise_on_error(isa.status());
  return isa.value();
}

// What Python calls a Program: a share of one.
struct PyProgram {
  std::shared_ptr<const Program> program;

  static PyProgram open(const std::string& path, uint64_t offset_bytes, std::optional<uint64_t> size_bytes,
                        const std::string& isa_name) {
    const std::optional<Isa> isa = isa_of(isa_name);
    return wrap([&] { return Program::open(path, offset_bytes, size_bytes.value_or(MappedFile::kToEnd), isa); });
  }
  static PyProgram from_bytes(const py::buffer& data, const std::string& isa_name) {
    const std::optional<Isa> isa = isa_of(isa_name);
    const py::buffer_info info = data.request();
    const uint64_t bytes = static_cast<uint64_t>(info.size) * static_cast<uint64_t>(info.itemsize);
    return wrap([&] { return Program::from_memory(info.ptr, bytes, isa); });
  }
  template <typename Load>
  static PyProgram wrap(Load load) {
    Result<std::shared_ptr<const Program>> result = [&] {
      const py::gil_scoped_release released;
      return load();
    }();
    raise_on_error(result.status());
    return {std::move(result.value())};
  }
  const Plan& plan(size_t index) const {
    if (index >= program->plans().size()) throw py::index_error("no such plan");
    return program->plans()[index];
  }
  py::list values(const std::vector<PlanValue>& values, const Plan& plan) const {
    py::list list;
    for (const PlanValue& value : values) {
      const TensorView& view = plan.tensors[value.tensor];
      list.append(py::make_tuple(py::str(value.name.data(), value.name.size()), numpy_dtype(view.dtype),
                                 py::tuple(py::cast(shape_of(view))), view.scale, view.zero_point));
    }
    return list;
  }
  py::list ops(size_t index) const {
    py::list list;
    for (const PlanOp& op : plan(index).ops) {
      list.append(py::make_tuple(py::str(op.name.data(), op.name.size()), op.def->name, name_of(program->kernel_isa()),
                                 op.record->macs, operand_bytes(plan(index), op)));
    }
    return list;
  }
};

// A session with numpy on both sides.
class PySession {
 public:
  PySession(const PyProgram& program, int threads) {
    Result<std::unique_ptr<Session>> session = Session::create(program.program, threads);
    raise_on_error(session.status());
    session_ = std::move(session.value());
  }

  py::dict run(const py::dict& feeds, std::optional<size_t> plan) { return run_once(feeds, plan, nullptr); }

  std::pair<py::dict, std::vector<int64_t>> run_timed(const py::dict& feeds, std::optional<size_t> plan) {
    std::vector<int64_t> times;
    py::dict outputs = run_once(feeds, plan, &times);
    return {std::move(outputs), std::move(times)};
  }

  Session& session() const { return *session_; }

 private:
  py::dict run_once(const py::dict& feeds, std::optional<size_t> plan, std::vector<int64_t>* times) {
    const Session::Use use(*session_);
    raise_on_error(use.status());
    raise_on_error(session_->select_plan(plan.has_value() ? *plan : matching_plan(feeds)));
    std::vector<py::array> alive = bind_inputs(feeds);
    py::dict outputs = bind_outputs();
    const Status status = [&] {
      const py::gil_scoped_release released;
      return times == nullptr ? session_->run() : session_->run_timed(times);
    }();
    raise_on_error(status);
    return outputs;
  }

  static py::str name_of_value(const PlanValue& value) { return {value.name.data(), value.name.size()}; }

  // The first plan whose input shapes are those of the feeds; the first plan when there is none, whose shapes the
  // message will then name.
  size_t matching_plan(const py::dict& feeds) const {
    const std::vector<Plan>& plans = session_->program().plans();
    for (size_t i = 0; i < plans.size() && plans.size() > 1; ++i) {
      bool fits = true;
      for (const PlanValue& value : plans[i].inputs) {
        const py::str name = name_of_value(value);
        fits = fits && feeds.contains(name) && py::isinstance<py::array>(feeds[name]) &&
               shape_of(py::cast<py::array>(feeds[name])) == shape_of(plans[i].tensors[value.tensor]);
      }
      if (fits) return i;
    }
    return 0;
  }

  // Binds contiguous, aligned arrays as they are and copies of the others. The result must live until the run ends.
  std::vector<py::array> bind_inputs(const py::dict& feeds) {
    const Plan& plan = session_->plan();
    std::vector<py::array> alive;
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      const py::str name = name_of_value(plan.inputs[i]);
      if (!feeds.contains(name)) fail_input(name, "input is missing");
      alive.push_back(dense(name, feeds[name], plan.tensors[plan.inputs[i].tensor]));
      raise_on_error(session_->bind_input(i, alive.back().data(), static_cast<uint64_t>(alive.back().nbytes())));
    }
    if (feeds.size() != plan.inputs.size()) {
      for (const auto& item : feeds) {
        const std::string name = py::str(item.first).cast<std::string>();
        if (Plan::find(plan.inputs, name) == nullptr) fail_input(name, "the model has no such input");
      }
    }
    return alive;
  }

  static py::array dense(const std::string& name, const py::object& feed, const TensorView& view) {
    if (!py::isinstance<py::array>(feed)) fail_input(name, "is not a numpy array");
    py::array array = py::cast<py::array>(feed);
    const py::dtype dtype = numpy_dtype(view.dtype);
    if (!same_dtype(array.dtype(), dtype) || shape_of(array) != shape_of(view)) {
      fail_input(name, "wrong dtype or shape (got " + describe(array.dtype(), shape_of(array)) + ", expected " +
                           describe(dtype, shape_of(view)) + ")");
    }
    constexpr int kReady = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
    if ((array.flags() & kReady) == kReady) return array;
    return array.attr("copy")("C");
  }

  [[noreturn]] static void fail_input(const std::string& name, const std::string& problem) {
    raise_on_error({StatusCode::kInvalidInput, "input '" + name + "': " + problem});
    throw py::value_error(problem);
  }

  py::dict bind_outputs() {
    const Plan& plan = session_->plan();
    py::dict outputs;
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const TensorView& view = plan.tensors[plan.outputs[i].tensor];
      py::array array(numpy_dtype(view.dtype), shape_of(view));
      raise_on_error(session_->bind_output(i, array.mutable_data(), static_cast<uint64_t>(array.nbytes())));
      outputs[name_of_value(plan.outputs[i])] = std::move(array);
    }
    return outputs;
  }

  std::unique_ptr<Session> session_;
};

void register_cpu(py::module_& module) {
  module.def(
      "cpu_features", [] { return cpu_features(); }, "Features of this CPU, named as in /proc/cpuinfo, sorted.");
  module.def("usable_cpus", &ThreadPool::usable_cpus,
             "Cores that an inference may use: affinity mask, cgroup quota, big cores, one thread a core.");
  module.def(
      "best_isa", [] { return std::string(name_of(best_isa())); }, "The best instruction set of this CPU.");
  module.def(
      "active_isa",
      [] {
        Result<Isa> isa = active_isa();
        raise_on_error(isa.status());
        return std::string(name_of(isa.value()));
      },
      "The instruction set in force: EDGEKIT_ISA, or the best.");
  module.def(
      "isa_problem",
      [](const std::string& name) -> std::optional<std::string> {
        Result<Isa> wanted = parse_isa(name);
        if (!wanted.is_ok()) return wanted.status().message();
        Result<Isa> active = active_isa();
        if (!active.is_ok()) return active.status().message();
        Result<Isa> kernels = kernel_isa(wanted.value(), active.value());
        return kernels.is_ok() ? std::nullopt : std::make_optional(kernels.status().message());
      },
      py::arg("isa"), "Why a program for that instruction set can't run here, or None.");
}

}  // namespace

void register_engine(py::module_& module) {
  register_cpu(module);
  py::class_<PyProgram>(module, "Program", "A verified native program; sessions share it.")
      .def(py::init(&PyProgram::open), py::arg("path"), py::arg("offset_bytes") = 0, py::arg("size_bytes") = py::none(),
           py::arg("isa") = "")
      .def_static("from_bytes", &PyProgram::from_bytes, py::arg("data"), py::arg("isa") = "")
      .def_property_readonly("isa", [](const PyProgram& self) { return std::string(name_of(self.program->isa())); })
      .def_property_readonly("kernel_isa",
                             [](const PyProgram& self) { return std::string(name_of(self.program->kernel_isa())); })
      .def_property_readonly("plan_count", [](const PyProgram& self) { return self.program->plans().size(); })
      .def_property_readonly("size_bytes", [](const PyProgram& self) { return self.program->size_bytes(); })
      .def_property_readonly("constants_bytes", [](const PyProgram& self) { return self.program->constants_bytes(); })
      .def(
          "arena_bytes", [](const PyProgram& self, size_t plan) { return self.plan(plan).arena_bytes; },
          py::arg("plan") = 0)
      .def(
          "inputs",
          [](const PyProgram& self, size_t plan) { return self.values(self.plan(plan).inputs, self.plan(plan)); },
          py::arg("plan") = 0)
      .def(
          "outputs",
          [](const PyProgram& self, size_t plan) { return self.values(self.plan(plan).outputs, self.plan(plan)); },
          py::arg("plan") = 0)
      .def("ops", &PyProgram::ops, py::arg("plan") = 0);
  py::class_<PySession>(module, "Session", "One stream of inferences of a Program; serves one thread at a time.")
      .def(py::init<const PyProgram&, int>(), py::arg("program"), py::arg("threads") = 0)
      .def("run", &PySession::run, py::arg("feeds"), py::arg("plan") = py::none())
      .def("run_timed", &PySession::run_timed, py::arg("feeds"), py::arg("plan") = py::none())
      .def_property_readonly("threads", [](const PySession& self) { return self.session().threads(); })
      .def_property_readonly("memory_bytes", [](const PySession& self) { return self.session().memory_bytes(); });
}

}  // namespace edgekit
