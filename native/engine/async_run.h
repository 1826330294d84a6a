// AsyncRun: runs a session on a thread of its own, one run at a time.
#ifndef EDGEKIT_ENGINE_ASYNC_RUN_H_
#define EDGEKIT_ENGINE_ASYNC_RUN_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/session.h"

namespace edgekit {

class AsyncRun {
 public:
  explicit AsyncRun(Session& session) : session_(session) {}
  ~AsyncRun();  // waits for the run in progress
  AsyncRun(const AsyncRun&) = delete;
  AsyncRun& operator=(const AsyncRun&) = delete;

  // Starts a run. kRuntime when one is submitted and not yet waited for, kOutOfMemory when there is no thread to be
  // had.
  Status submit();

  // The status of the submitted run; nothing when it is not done after timeout (negative: no limit). kInvalidInput when
  // none was submitted.
  std::optional<Status> wait(std::chrono::milliseconds timeout);

 private:
  enum class State { kIdle, kSubmitted, kDone };

  void serve();

  Session& session_;
  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::kIdle;
  bool stopping_ = false;
  Status result_;
  std::thread thread_;
};

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_ASYNC_RUN_H_
