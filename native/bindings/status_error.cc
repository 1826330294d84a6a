#include "bindings/status_error.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace edgekit {
namespace {

const char* exception_name(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidProgram:
      return "PackageError";
    case StatusCode::kInvalidInput:
      return "TensorError";
    case StatusCode::kUnsupportedIsa:
      return "IsaError";
    case StatusCode::kOutOfMemory:
      return "EnvironmentFaultError";
    case StatusCode::kIo:
      return "StorageError";
    case StatusCode::kRuntime:
      return "EngineError";
    case StatusCode::kClosed:
      return "FatalEngineError";
    case StatusCode::kOk:
      break;
  }
  return "InternalError";
}

}  // namespace

void raise_on_error(const Status& status) {
  if (status.is_ok()) return;
  const py::object type = py::module_::import("edgekit.errors").attr(exception_name(status.code()));
  const py::object error = type(status.message());
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

}  // namespace edgekit
