#include "engine/async_run.h"

#include <system_error>

namespace edgekit {

AsyncRun::~AsyncRun() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status AsyncRun::submit() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ != State::kIdle) {
    return {StatusCode::kRuntime, "a run is already submitted; wait for it first"};
  }
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error& error) {
      return {StatusCode::kOutOfMemory, std::string("can't start a thread: ") + error.what()};
    }
  }
  state_ = State::kSubmitted;
  changed_.notify_all();
  return Status::ok();
}

std::optional<Status> AsyncRun::wait(std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (state_ == State::kIdle) return Status(StatusCode::kInvalidInput, "no run was submitted");
  const auto done = [this] { return state_ == State::kDone; };
  if (timeout.count() < 0) {
    changed_.wait(lock, done);
  } else if (!changed_.wait_for(lock, timeout, done)) {
    return std::nullopt;
  }
  state_ = State::kIdle;
  return result_;
}

void AsyncRun::serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || state_ == State::kSubmitted; });
    if (state_ != State::kSubmitted) return;
    lock.unlock();
    Status status = [this] {
      const Session::Use use(session_);
      return use.status().is_ok() ? session_.run() : use.status();
    }();
    lock.lock();
    result_ = std::move(status);
    state_ = State::kDone;
    changed_.notify_all();
  }
}

}  // namespace edgekit
