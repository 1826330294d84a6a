// edgekit._native.sha256 and digest_file: what a package is verified with. Python has both, in modules that take longer
// to import than a package takes to load.
#include <pybind11/pybind11.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "bindings/released_gil.h"
#include "core/file_digest.h"
#include "core/sha256.h"

namespace py = pybind11;

namespace edgekit {
namespace {

std::string sha256_of(const py::bytes& data) {
  const std::string_view bytes(data);
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

py::tuple digest(int descriptor, uint64_t offset_bytes, uint64_t size_bytes) {
  const FileDigest found = [&] {
    const ReleasedGil released;
    return digest_file(descriptor, offset_bytes, size_bytes);
  }();
  if (found.error != 0) {
    errno = found.error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw py::error_already_set();
  }
  return py::make_tuple(found.sha256, found.crc32);
}

}  // namespace

void register_files(py::module_& module) {
  module.def("sha256", &sha256_of, py::arg("data"), "SHA-256 of bytes, 64 hex digits.");
  module.def("digest_file", &digest, py::arg("descriptor"), py::arg("offset_bytes"), py::arg("size_bytes"),
             "(SHA-256, CRC-32) of a range of an open file.");
}

}  // namespace edgekit
