// edgekit._native.measure_*: peaks of this machine. The GIL is released while measuring.
#include <pybind11/pybind11.h>

#include "bindings/released_gil.h"
#include "bindings/status_error.h"
#include "core/cpu_features.h"
#include "kernels/roofline/roofline.h"

namespace py = pybind11;

namespace edgekit {
namespace {

const RooflineKernels& active_kernels() {
  const Result<Isa> isa = active_isa();
  raise_on_error(isa.status());
  return select_roofline(isa.value());
}

double int8_gmac_s(int threads) {
  const RooflineKernels& kernels = active_kernels();
  const ReleasedGil released;
  return measure_gmac_s(kernels.int8_macs, threads);
}

double fp32_gmac_s(int threads) {
  const RooflineKernels& kernels = active_kernels();
  const ReleasedGil released;
  return measure_gmac_s(kernels.fp32_macs, threads);
}

double read_gb_s(int64_t buffer_bytes, int threads) {
  const Result<double> found = [&] {
    const ReleasedGil released;
    return measure_read_gb_s(buffer_bytes, threads);
  }();
  raise_on_error(found.status());
  return found.value();
}

}  // namespace

void register_roofline(py::module_& module) {
  module.def("measure_int8_gmac_s", &int8_gmac_s, py::arg("threads"));
  module.def("measure_fp32_gmac_s", &fp32_gmac_s, py::arg("threads"));
  module.def("measure_read_gb_s", &read_gb_s, py::arg("buffer_bytes"), py::arg("threads"));
}

}  // namespace edgekit
