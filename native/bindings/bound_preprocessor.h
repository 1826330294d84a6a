// What Python calls a Preprocessor: the pass and the checks of the arrays it is given.
#ifndef EDGEKIT_BINDINGS_BOUND_PREPROCESSOR_H_
#define EDGEKIT_BINDINGS_BOUND_PREPROCESSOR_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "kernels/preprocess/preprocess.h"

namespace edgekit {

class BoundPreprocessor {
 public:
  explicit BoundPreprocessor(const preprocess::Config& config);  // throws ValueError

  // The planes as the pass reads them; valid while the arrays live. Throws ValueError when they hold too little.
  preprocess::Image bind(const std::vector<pybind11::array>& planes) const;

  void run(const std::vector<pybind11::array>& planes, pybind11::array output);
  preprocess::Preprocessor* pass() const { return pass_.get(); }

 private:
  void bind_plane(int index, const pybind11::array& array, preprocess::Image& image) const;

  preprocess::Config config_;
  std::unique_ptr<preprocess::Preprocessor> pass_;
};

}  // namespace edgekit

#endif  // EDGEKIT_BINDINGS_BOUND_PREPROCESSOR_H_
