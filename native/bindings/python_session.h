// PySession: a Session with numpy arrays on both sides.
#ifndef EDGEKIT_BINDINGS_PYTHON_SESSION_H_
#define EDGEKIT_BINDINGS_PYTHON_SESSION_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/program.h"
#include "engine/session.h"

namespace edgekit {

pybind11::dtype numpy_dtype(Dtype dtype);
std::vector<pybind11::ssize_t> shape_of(const TensorView& view);
pybind11::str python_name(std::string_view name);

class PySession {
 public:
  PySession(std::shared_ptr<const Program> program, int threads, Session::Tuning tuning = {});

  // Output name to a fresh array. plan: shape bucket, or the one whose input shapes the feeds have.
  pybind11::dict run(const pybind11::dict& feeds, std::optional<size_t> plan) { return run_once(feeds, plan, nullptr); }

  // The same, with the nanoseconds of each op.
  std::pair<pybind11::dict, std::vector<int64_t>> run_timed(const pybind11::dict& feeds, std::optional<size_t> plan);

  // Kernel of each op of a plan, in the way that it runs here.
  std::vector<std::string> kernels(size_t plan) const;

  // Outputs of a plan that lie in memory of another owner, at offsets; base keeps it alive.
  pybind11::dict view_outputs(size_t plan, std::byte* data, const std::vector<uint64_t>& offsets,
                              pybind11::handle base);

  const Session& session() const { return *session_; }
  Session& session() { return *session_; }

 private:
  // An input or output as Python sees it; made once, so that a run creates no names or dtypes.
  struct Port {
    pybind11::str name;
    pybind11::dtype dtype;
    std::vector<pybind11::ssize_t> shape;

    bool fits(const pybind11::array& array) const;
  };
  struct PlanPorts {
    std::vector<Port> inputs, outputs;
  };

  pybind11::dict run_once(const pybind11::dict& feeds, std::optional<size_t> plan, std::vector<int64_t>* times);
  size_t matching_plan(const pybind11::dict& feeds) const;
  std::vector<pybind11::array> bind_inputs(const pybind11::dict& feeds);
  pybind11::array dense(const Port& port, pybind11::handle feed) const;
  pybind11::dict bind_outputs();
  const PlanPorts& ports() const { return ports_[session_->selected_plan()]; }

  std::unique_ptr<Session> session_;
  std::vector<PlanPorts> ports_;
};

}  // namespace edgekit

#endif  // EDGEKIT_BINDINGS_PYTHON_SESSION_H_
