// The extension module edgekit._native. Each class is registered in a file of its own, register_*.cc.
#include <pybind11/pybind11.h>

#include "bindings/released_gil.h"

namespace edgekit {
void register_detect(pybind11::module_& module);
void register_engine(pybind11::module_& module);
void register_files(pybind11::module_& module);
void register_pipeline(pybind11::module_& module);
void register_preprocess(pybind11::module_& module);
void register_roofline(pybind11::module_& module);
void register_text(pybind11::module_& module);
}  // namespace edgekit

PYBIND11_MODULE(_native, module) {
  module.doc() = "Native core of edgekit.";
  edgekit::register_exit_hook();
  edgekit::register_detect(module);
  edgekit::register_engine(module);
  edgekit::register_files(module);
  edgekit::register_pipeline(module);
  edgekit::register_preprocess(module);
  edgekit::register_roofline(module);
  edgekit::register_text(module);
}
