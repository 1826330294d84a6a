// Session: one stream of inferences of a Program. Sessions share the program's weights; each has an arena of its own.
#ifndef EDGEKIT_ENGINE_SESSION_H_
#define EDGEKIT_ENGINE_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/fork_generation.h"
#include "core/status.h"
#include "engine/program.h"

namespace edgekit {

// How one op of a plan is to run: results are the same in all ways and with any number of tasks.
struct OpTuning {
  int way = 0;    // OpDef::ways
  int tasks = 0;  // RunContext::tasks
};

class Session {
 public:
  // By plan, then by op. No plans, or a plan without ops: as it comes.
  using Tuning = std::vector<std::vector<OpTuning>>;

  // Allocates the arena and selects plan 0. threads within an inference: 0 takes every usable core; more than there are
  // count as that many. kOutOfMemory with the number of bytes when there is no memory, kInvalidInput for a tuning that
  // is not one of this program.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Program> program, int threads,
                                                 Tuning tuning = {});

  // Held around the calls below: one session serves one thread at a time. A second thread gets kRuntime, a forked
  // child kClosed; both at once, without waiting.
  class Use {
   public:
    explicit Use(Session& session);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    const Status& status() const { return status_; }

   private:
    Session* session_ = nullptr;
    Status status_;
  };

  const Program& program() const { return *program_; }
  const Plan& plan() const { return program_->plans()[selected_]; }
  size_t selected_plan() const { return selected_; }
  int threads() const { return threads_; }
  // Kernel of each op of a plan, in the way that it runs here.
  std::vector<std::string> kernels(size_t plan) const;
  uint64_t memory_bytes() const { return memory_.size_bytes() + state_bytes_; }  // arena, scratch and state

  // Chooses the shape bucket. The first time for each, this allocates; inputs and outputs have to be bound (anew).
  Status select_plan(size_t index);

  // Binds input or output i of the selected plan to dense memory of the caller, which must live until the run ends and
  // be aligned to its element size. size_bytes must be exactly what the value needs.
  Status bind_input(size_t i, const void* data, uint64_t size_bytes);
  Status bind_output(size_t i, void* data, uint64_t size_bytes);

  // Runs the selected plan once. Allocates nothing.
  Status run();

  // Runs once and stores the time of each op of the selected plan, nanoseconds.
  Status run_timed(std::vector<int64_t>* op_times_ns);

 private:
  // One op with its operands.
  struct Step {
    const OpDef* def;
    OpArgs args;
    const std::byte* state;
    int tasks;
  };
  // What binding and running one plan needs; made when the plan is first selected.
  struct PlanState {
    std::vector<TensorView> tensors;
    std::vector<const TensorView*> operands;
    std::vector<Step> steps;
    AlignedBuffer op_state;
    std::vector<std::vector<uint32_t>> buffer_tensors;  // tensors in each input and output buffer
    std::vector<bool> bound;                            // by buffer
    size_t unbound = 0;
  };

  explicit Session(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  Status check_tuning() const;
  OpTuning tuning_of(size_t plan, size_t op) const;
  Status allocate();
  uint64_t scratch_need(size_t plan) const;
  std::unique_ptr<PlanState> make_state(size_t plan) const;
  Status prepare_ops(PlanState& state) const;
  Status bind(const std::vector<PlanValue>& values, size_t i, void* data, uint64_t size_bytes, const char* side);
  Status execute(int64_t* op_times_ns);
  Status check_bound() const;

  std::shared_ptr<const Program> program_;
  const int generation_ = fork_generation();
  int threads_ = 1;
  Tuning tuning_;
  std::atomic<bool> in_use_{false};
  AlignedBuffer memory_;  // guard | arena | guard | scratch | guard
  std::byte* arena_ = nullptr;
  std::byte* scratch_ = nullptr;
  uint64_t state_bytes_ = 0;  // of all plans selected so far
  size_t selected_ = 0;
  std::vector<std::unique_ptr<PlanState>> states_;  // by plan
};

// In how many ways each op of a plan can run with that many threads, and the name of each way's kernel.
std::vector<std::vector<std::string>> kernels_by_way(const Program& program, size_t plan, int threads);

// Least bytes that an op of a plan reads and writes: every element of its operands once, repeated ones not counted.
uint64_t operand_bytes(const Plan& plan, const PlanOp& op);

}  // namespace edgekit

#endif  // EDGEKIT_ENGINE_SESSION_H_
