#include "pipeline/infer_stage.h"

#include <chrono>
#include <utility>

#include "core/clock.h"
#include "core/fork_generation.h"

namespace edgekit {
namespace {

constexpr int64_t kPollNs = 1'000'000'000;

uint64_t output_bytes(const Plan& plan) {
  uint64_t total = 0;
  for (const PlanValue& output : plan.outputs) total += aligned_bytes(plan.buffer_bytes[output.buffer]);
  return total;
}

}  // namespace

InferStage::InferStage(FramePipeline& pipeline, Session& session, size_t ready)
    : pipeline_(pipeline), session_(session), capacity_(ready), generation_(fork_generation()) {
  thread_ = std::thread([this] { loop(); });
}

InferStage::~InferStage() { close(nullptr); }

std::vector<uint64_t> InferStage::offsets(const Plan& plan) {
  std::vector<uint64_t> offsets;
  uint64_t next = 0;
  for (const PlanValue& output : plan.outputs) {
    offsets.push_back(next);
    next += aligned_bytes(plan.buffer_bytes[output.buffer]);
  }
  return offsets;
}

void InferStage::loop() {
  Status status;
  while (status.is_ok()) {
    FramePipeline::Taken frame;
    const FramePipeline::Outcome outcome = pipeline_.take(kPollNs, &frame);
    if (outcome == FramePipeline::Outcome::kTimeout) continue;
    if (outcome == FramePipeline::Outcome::kClosed) {
      if (pipeline_.out_of_memory()) status = {StatusCode::kOutOfMemory, "no memory for a frame of the pipeline"};
      break;
    }
    Done done;
    status = infer(&frame, &done);
    if (status.is_ok() && keep(std::move(done))) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    lost_.push_back(frame.owner);
    break;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = std::move(status);
  ended_ = true;
  ready_.notify_all();
}

Status InferStage::infer(FramePipeline::Taken* frame, Done* done) {
  done->frame = *frame;
  done->dropped = pipeline_.dropped();
  done->begin_ns = now_ns();
  Status status = [&]() -> Status {
    const Session::Use use(session_);
    EK_RETURN_IF_ERROR(use.status());
    EK_RETURN_IF_ERROR(session_.select_plan(frame->plan));
    const Plan& plan = session_.plan();
    Result<OutputPool::Lease> outputs = outputs_->take(output_bytes(plan));
    if (!outputs.is_ok()) return outputs.status();
    EK_RETURN_IF_ERROR(session_.bind_input(0, frame->data, frame->bytes));
    std::byte* next = outputs.value().data();
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const uint64_t bytes = plan.buffer_bytes[plan.outputs[i].buffer];
      EK_RETURN_IF_ERROR(session_.bind_output(i, next, bytes));
      next += aligned_bytes(bytes);
    }
    EK_RETURN_IF_ERROR(session_.run());
    done->outputs = std::move(outputs.value());
    return Status::ok();
  }();
  done->end_ns = now_ns();
  pipeline_.release(frame->slot);
  return status;
}

// Waits for room and puts the frame there; false when closed meanwhile.
bool InferStage::keep(Done done) {
  std::unique_lock<std::mutex> lock(mutex_);
  room_.wait(lock, [&] { return closed_ || finished_.size() < capacity_; });
  if (closed_) return false;
  finished_.push_back(std::move(done));
  ready_.notify_all();
  return true;
}

FramePipeline::Outcome InferStage::take(int64_t timeout_ns, Done* done) {
  if (generation_ != fork_generation()) return FramePipeline::Outcome::kClosed;
  std::unique_lock<std::mutex> lock(mutex_);
  const auto holds = [&] { return closed_ || ended_ || !finished_.empty(); };
  if (!ready_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), holds)) {
    return FramePipeline::Outcome::kTimeout;
  }
  if (closed_ || finished_.empty()) return FramePipeline::Outcome::kClosed;
  *done = std::move(finished_.front());
  finished_.pop_front();
  room_.notify_one();
  return FramePipeline::Outcome::kOk;
}

Status InferStage::status() const {
  if (generation_ != fork_generation()) return Status::ok();
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

void InferStage::close(std::vector<void*>* left) {
  if (lost_in_fork(generation_, &thread_)) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    room_.notify_all();
    ready_.notify_all();
  }
  {
    const std::lock_guard<std::mutex> join_lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Done& done : finished_) lost_.push_back(done.frame.owner);
  finished_.clear();
  if (left != nullptr) left->insert(left->end(), lost_.begin(), lost_.end());
  lost_.clear();
}

}  // namespace edgekit
