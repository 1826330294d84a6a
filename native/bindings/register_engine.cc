// edgekit._native.Program and Session, and what the CPU can do. The GIL is released while loading and running.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python_session.h"
#include "bindings/released_gil.h"
#include "bindings/status_error.h"
#include "core/cpu_features.h"
#include "core/thread_pool.h"
#include "engine/program.h"

namespace py = pybind11;

namespace edgekit {
namespace {

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
      const ReleasedGil released;
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
      list.append(py::make_tuple(python_name(value.name), numpy_dtype(view.dtype), py::tuple(py::cast(shape_of(view))),
                                 view.scale, view.zero_point));
    }
    return list;
  }
  py::list ops(size_t index) const {
    py::list list;
    const std::vector<std::vector<std::string>> kernels = this->kernels(index, 1);
    for (size_t i = 0; i < kernels.size(); ++i) {
      const PlanOp& op = plan(index).ops[i];
      list.append(py::make_tuple(python_name(op.name), op.def->name, kernels[i].front(), op.record->macs,
                                 operand_bytes(plan(index), op)));
    }
    return list;
  }
  std::vector<std::vector<std::string>> kernels(size_t index, int threads) const {
    (void)plan(index);
    return kernels_by_way(*program, index, threads);
  }
};

using PyTuning = std::vector<std::vector<std::pair<int, int>>>;

Session::Tuning session_tuning(const PyTuning& from) {
  Session::Tuning tuning;
  for (const auto& plan : from) {
    tuning.emplace_back();
    for (const auto& [way, tasks] : plan) tuning.back().push_back({way, tasks});
  }
  return tuning;
}

void register_cpu(py::module_& module) {
  module.def("cpu_features", [] { return cpu_features(); }, "Features of this CPU, named as in /proc/cpuinfo, sorted.");
  module.def("usable_cpus", &ThreadPool::usable_cpus,
             "Cores that an inference may use: affinity mask, cgroup quota, big cores, one thread a core.");
  module.def("best_isa", [] { return std::string(name_of(best_isa())); }, "The best instruction set of this CPU.");
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
      .def("ops", &PyProgram::ops, py::arg("plan") = 0)
      .def("kernels", &PyProgram::kernels, py::arg("plan") = 0, py::arg("threads") = 1);
  py::class_<PySession>(module, "Session", "One stream of inferences of a Program; serves one thread at a time.")
      .def(py::init([](const PyProgram& program, int threads, const PyTuning& tuning) {
             return std::make_unique<PySession>(program.program, threads, session_tuning(tuning));
           }),
           py::arg("program"), py::arg("threads") = 0, py::arg("tuning") = PyTuning())
      .def("kernels", &PySession::kernels, py::arg("plan") = 0)
      .def("run", &PySession::run, py::arg("feeds"), py::arg("plan") = py::none())
      .def("run_timed", &PySession::run_timed, py::arg("feeds"), py::arg("plan") = py::none())
      .def_property_readonly("threads", [](const PySession& self) { return self.session().threads(); })
      .def_property_readonly("memory_bytes", [](const PySession& self) { return self.session().memory_bytes(); });
}

}  // namespace edgekit
