#include "pipeline/frame_pipeline.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/clock.h"
#include "core/fork_generation.h"

namespace edgekit {
namespace {

// Waits until the condition holds or the deadline passes; returns whether it holds.
template <typename Condition>
bool wait(std::condition_variable* changed, std::unique_lock<std::mutex>* lock, int64_t timeout_ns, Condition holds) {
  return changed->wait_for(*lock, std::chrono::nanoseconds(timeout_ns), holds);
}

}  // namespace

FramePipeline::FramePipeline(const Options& options)
    : options_(options), generation_(fork_generation()), slots_(static_cast<size_t>(options.slots)) {
  thread_ = std::thread([this] { preprocess_loop(); });
}

FramePipeline::~FramePipeline() { close(nullptr); }

int FramePipeline::find_free() const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].state == State::kFree) return static_cast<int>(i);
  }
  return -1;
}

FramePipeline::Outcome FramePipeline::push(const Job& job, int64_t timeout_ns, std::vector<void*>* dropped) {
  if (generation_ != fork_generation()) return Outcome::kClosed;
  std::unique_lock<std::mutex> lock(mutex_);
  const size_t capacity = static_cast<size_t>(options_.ingress);
  if (!options_.latest) {
    if (!wait(&room_, &lock, timeout_ns, [&] { return closed_ || ingress_.size() < capacity; })) {
      return Outcome::kTimeout;
    }
  }
  if (closed_ || ended_) return Outcome::kClosed;
  while (ingress_.size() >= capacity) {
    dropped->push_back(ingress_.front().job.owner);
    ingress_.pop_front();
    ++dropped_;
  }
  ingress_.push_back({job, now_ns()});
  work_.notify_one();
  return Outcome::kOk;
}

void FramePipeline::end() {
  if (generation_ != fork_generation()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  work_.notify_all();
  ready_.notify_all();
}

bool FramePipeline::fill(Slot* slot, const Waiting& waiting) {
  const size_t bytes = waiting.job.pass->output_bytes();
  if (slot->buffer.size_bytes() < bytes) {  // only when a larger shape comes for the first time
    Result<AlignedBuffer> buffer = AlignedBuffer::allocate(bytes, "pipeline slot");
    if (!buffer.is_ok()) return false;
    slot->buffer = std::move(buffer.value());
  }
  slot->taken.preprocess_begin_ns = now_ns();
  waiting.job.pass->run(waiting.job.image, slot->buffer.data());
  slot->taken.preprocess_end_ns = now_ns();
  slot->taken.data = slot->buffer.data();
  slot->taken.bytes = bytes;
  return true;
}

void FramePipeline::preprocess_loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    // A slot first, then the frame: it is taken as late as possible, so a newer one may still replace it.
    work_.wait(lock,
               [&] { return closed_ || (find_free() >= 0 && !ingress_.empty()) || (ended_ && ingress_.empty()); });
    if (closed_ || ingress_.empty()) return;
    const int index = find_free();
    Slot& slot = slots_[static_cast<size_t>(index)];
    const Waiting waiting = ingress_.front();
    ingress_.pop_front();
    slot.state = State::kFill;
    slot.taken = {};
    slot.taken.slot = index;
    slot.taken.owner = waiting.job.owner;
    slot.taken.plan = waiting.job.plan;
    slot.taken.pushed_ns = waiting.pushed_ns;
    filling_ = true;
    room_.notify_one();
    lock.unlock();
    const bool filled = fill(&slot, waiting);
    lock.lock();
    filling_ = false;
    slot.state = State::kReady;  // also when it failed, so that close() finds the owner
    if (filled) {
      ready_slots_.push_back(index);
    } else {
      out_of_memory_ = true;
    }
    ready_.notify_all();
    if (!filled) return;
  }
}

FramePipeline::Outcome FramePipeline::take(int64_t timeout_ns, Taken* taken) {
  if (generation_ != fork_generation()) return Outcome::kClosed;
  std::unique_lock<std::mutex> lock(mutex_);
  const auto finished = [&] {
    return closed_ || out_of_memory_ || (ended_ && ingress_.empty() && !filling_ && ready_slots_.empty());
  };
  if (!wait(&ready_, &lock, timeout_ns, [&] { return finished() || !ready_slots_.empty(); })) return Outcome::kTimeout;
  if (closed_ || ready_slots_.empty()) return Outcome::kClosed;
  Slot& slot = slots_[static_cast<size_t>(ready_slots_.front())];
  ready_slots_.pop_front();
  slot.state = State::kInflight;
  *taken = slot.taken;
  slot.taken.owner = nullptr;  // the caller has it now
  return Outcome::kOk;
}

void FramePipeline::release(int index) {
  if (generation_ != fork_generation() || index < 0 || static_cast<size_t>(index) >= slots_.size()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.state != State::kInflight) return;
  slot.state = State::kDone;
  slot.taken = {};
  slot.state = State::kFree;
  work_.notify_one();
  ready_.notify_all();
}

void FramePipeline::close(std::vector<void*>* left) {
  if (lost_in_fork(generation_, &thread_)) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    room_.notify_all();
    work_.notify_all();
    ready_.notify_all();
  }
  {
    const std::lock_guard<std::mutex> join_lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto give = [&](void* owner) {
    if (left != nullptr && owner != nullptr) left->push_back(owner);
  };
  for (const Waiting& waiting : ingress_) give(waiting.job.owner);
  ingress_.clear();
  for (Slot& slot : slots_) {
    give(slot.taken.owner);
    slot.taken.owner = nullptr;
  }
}

int64_t FramePipeline::dropped() const {
  if (generation_ != fork_generation()) return 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

bool FramePipeline::out_of_memory() const {
  if (generation_ != fork_generation()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  return out_of_memory_;
}

}  // namespace edgekit
