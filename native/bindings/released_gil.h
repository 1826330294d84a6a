// ReleasedGil: lets other Python threads run while native code works. Every binding uses this, not pybind11's own.
#ifndef EDGEKIT_BINDINGS_RELEASED_GIL_H_
#define EDGEKIT_BINDINGS_RELEASED_GIL_H_

#include <Python.h>
#include <pybind11/pybind11.h>

namespace edgekit {

// Gives the GIL up while it lives. Once the interpreter is exiting, a thread that would take it back sleeps instead:
// CPython would unwind it with pthread_exit, which aborts the process on its way through C++ frames.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil();
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

// Registers with Python's atexit what makes the above true.
void register_exit_hook();

}  // namespace edgekit

#endif  // EDGEKIT_BINDINGS_RELEASED_GIL_H_
