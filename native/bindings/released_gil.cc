#include "bindings/released_gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace py = pybind11;

namespace edgekit {
namespace {

std::atomic<bool> exiting{false};
std::atomic<int> returning{0};               // threads between the look at `exiting` and having the GIL again
std::atomic<std::thread::id> exit_thread{};  // the one that shuts the interpreter down; it always gets the GIL

[[noreturn]] void sleep_until_exit() {
  while (true) pause();
}

// Runs before the interpreter is torn down, while the GIL can still be had. Afterwards no other thread waits for it
// inside C++ code, and none will.
void begin_exit() {
  exit_thread = std::this_thread::get_id();
  exiting = true;
  PyThreadState* state = PyEval_SaveThread();
  while (returning.load() != 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  PyEval_RestoreThread(state);
}

}  // namespace

ReleasedGil::~ReleasedGil() {
  returning.fetch_add(1);
  if (exiting.load() && exit_thread.load() != std::this_thread::get_id()) {
    returning.fetch_sub(1);
    sleep_until_exit();
  }
  PyEval_RestoreThread(state_);
  returning.fetch_sub(1);
}

void register_exit_hook() {
  py::module_::import("atexit").attr("register")(py::cpp_function(begin_exit));
  // A forked child has no other threads: those that were on their way to the GIL will never arrive in it.
  pthread_atfork(nullptr, nullptr, [] { returning = 0; });
}

}  // namespace edgekit
