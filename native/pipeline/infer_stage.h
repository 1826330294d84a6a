// InferStage: the inference of a FramePipeline on a thread of its own. It takes prepared inputs, runs a session on them
// and keeps the outputs until they are taken, in order; between a frame's capture and its outputs no Python runs.
#ifndef EDGEKIT_PIPELINE_INFER_STAGE_H_
#define EDGEKIT_PIPELINE_INFER_STAGE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/status.h"
#include "engine/session.h"
#include "pipeline/frame_pipeline.h"
#include "pipeline/output_pool.h"

namespace edgekit {

class InferStage {
 public:
  // One frame's outputs. Those of plan p lie at offsets(p) of the memory.
  struct Done {
    FramePipeline::Taken frame;  // its slot is free again; owner and times are of use
    OutputPool::Lease outputs;
    int64_t begin_ns = 0, end_ns = 0;  // of the inference, steady clock
    int64_t dropped = 0;               // frames that the ingress had dropped when it began
  };

  // Starts the thread. The pipeline and the session must outlive this; the session has one input, and nobody else uses
  // it meanwhile. ready: finished frames that may wait to be taken; more make the inference wait.
  InferStage(FramePipeline& pipeline, Session& session, size_t ready);
  ~InferStage();  // close() first, or owners that are still inside are lost
  InferStage(const InferStage&) = delete;
  InferStage& operator=(const InferStage&) = delete;

  // Where each output of a plan lies in a frame's memory, in bytes; multiples of 64.
  static std::vector<uint64_t> offsets(const Plan& plan);

  // Waits for the next finished frame. kClosed: the pipeline is at its end or closed, or an inference failed: then
  // status() says why, once all frames before it are taken.
  FramePipeline::Outcome take(int64_t timeout_ns, Done* done);
  Status status() const;

  // Stops and joins; the pipeline must be closed already. Owners still inside are appended to left. May be called
  // twice, and by several threads.
  void close(std::vector<void*>* left);

 private:
  void loop();
  Status infer(FramePipeline::Taken* frame, Done* done);
  bool keep(Done done);

  FramePipeline& pipeline_;
  Session& session_;
  const size_t capacity_;
  const int generation_;
  const std::shared_ptr<OutputPool> outputs_ = std::make_shared<OutputPool>();
  mutable std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::deque<Done> finished_;
  std::vector<void*> lost_;  // owners of frames whose inference failed
  Status status_;
  bool ended_ = false, closed_ = false;
  std::mutex join_mutex_;  // close() may be called by several threads at once
  std::thread thread_;
};

}  // namespace edgekit

#endif  // EDGEKIT_PIPELINE_INFER_STAGE_H_
