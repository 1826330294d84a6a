// FramePipeline: capture -> [ingress] -> preprocess thread -> [slots] -> inference. Indices of fixed slots travel
// through the stages; a slot is FREE, being FILLed, READY, INFLIGHT or DONE, and nothing else.
//
// Frames are dropped at the ingress and nowhere else: in `latest` mode a new frame replaces the oldest waiting one, in
// block mode push() waits for room. With two slots one frame is in flight and one is queued behind it.
#ifndef EDGEKIT_PIPELINE_FRAME_PIPELINE_H_
#define EDGEKIT_PIPELINE_FRAME_PIPELINE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "core/aligned_buffer.h"
#include "kernels/preprocess/preprocess.h"

namespace edgekit {

class FramePipeline {
 public:
  struct Options {
    int slots = 2;
    int ingress = 1;      // frames that may wait in front of the preprocess thread
    bool latest = false;  // replace the oldest waiting frame rather than wait
  };

  // One frame on its way in. The owner keeps pass and planes alive. Whoever gets the owner back frees it; no thread of
  // the pipeline ever does, since it may be a Python object.
  struct Job {
    preprocess::Image image;
    preprocess::Preprocessor* pass = nullptr;
    void* owner = nullptr;
    size_t plan = 0;  // of the inference: shape bucket
  };

  struct Taken {
    int slot = -1;
    std::byte* data = nullptr;  // the prepared input, valid until release(slot)
    size_t bytes = 0;
    void* owner = nullptr;
    size_t plan = 0;
    int64_t pushed_ns = 0, preprocess_begin_ns = 0, preprocess_end_ns = 0;  // steady clock
  };

  enum class Outcome { kOk, kTimeout, kClosed };

  explicit FramePipeline(const Options& options);
  ~FramePipeline();  // close() first, or owners that are still inside are lost
  FramePipeline(const FramePipeline&) = delete;
  FramePipeline& operator=(const FramePipeline&) = delete;

  // Hands a frame in. Owners of replaced frames are appended to dropped. Unless kOk the job was not taken.
  Outcome push(const Job& job, int64_t timeout_ns, std::vector<void*>* dropped);

  // No more frames will come: take() gives what is still inside, then kClosed.
  void end();

  // Waits for the next prepared frame, in order. kClosed: the end, closed, or no memory for a slot.
  Outcome take(int64_t timeout_ns, Taken* taken);

  // The inference has read the input: INFLIGHT -> DONE -> FREE. Any other slot is left alone.
  void release(int slot);

  // Stops everything and joins; waiting calls return kClosed. Owners still inside are appended to left. May be called
  // twice, and by several threads.
  void close(std::vector<void*>* left);

  int64_t dropped() const;
  bool out_of_memory() const;

 private:
  enum class State : uint8_t { kFree, kFill, kReady, kInflight, kDone };
  struct Waiting {
    Job job;
    int64_t pushed_ns;
  };
  struct Slot {
    State state = State::kFree;
    AlignedBuffer buffer;
    Taken taken;
  };

  void preprocess_loop();
  static bool fill(Slot* slot, const Waiting& waiting);
  int find_free() const;

  const Options options_;
  const int generation_;
  mutable std::mutex mutex_;
  std::condition_variable room_;   // the ingress has room
  std::condition_variable work_;   // a frame waits, a slot became free, or the end
  std::condition_variable ready_;  // a slot is ready, or the end
  std::deque<Waiting> ingress_;
  std::deque<int> ready_slots_;
  std::vector<Slot> slots_;
  bool filling_ = false;
  int64_t dropped_ = 0;
  bool ended_ = false, closed_ = false, out_of_memory_ = false;
  std::mutex join_mutex_;  // close() may be called by several threads at once
  std::thread thread_;
};

}  // namespace edgekit

#endif  // EDGEKIT_PIPELINE_FRAME_PIPELINE_H_
