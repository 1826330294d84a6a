#include "engine/session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/thread_pool.h"

namespace edgekit {
namespace {

// Kernels may read (never write) this far past the end of an arena buffer, and before its start.
constexpr uint64_t kGuardBytes = 64;

OpArgs make_args(const PlanOp& op, const TensorView* const* operands, int way) {
  return {operands, op.record->input_count, operands + op.record->input_count, op.record->output_count, op.attributes,
          way};
}

// Operands as the plan has them, whatever they are bound to later.
OpArgs plan_args(const Plan& plan, const PlanOp& op, int way, const TensorView* (&operands)[kLimitOperandsPerOp]) {
  const int count = op.record->input_count + op.record->output_count;
  for (int i = 0; i < count; ++i) operands[i] = op.operands[i] < 0 ? nullptr : &plan.tensors[op.operands[i]];
  return make_args(op, operands, way);
}

int way_count(const Plan& plan, const PlanOp& op, int threads, Isa isa) {
  if (op.def->ways == nullptr) return 1;
  const TensorView* operands[kLimitOperandsPerOp];
  return op.def->ways(plan_args(plan, op, 0, operands), threads, isa);
}

std::string kernel_name(const Plan& plan, const PlanOp& op, int way, Isa isa) {
  if (op.def->kernel == nullptr) return std::string(op.def->name) + "_scalar";
  const TensorView* operands[kLimitOperandsPerOp];
  return op.def->kernel(plan_args(plan, op, way, operands), isa);
}

// Brackets an inference: workers may spin and denormals are flushed inside.
class Burst {
 public:
  explicit Burst(ThreadPool& pool) : pool_(pool) { pool_.begin_burst(); }
  ~Burst() { pool_.end_burst(); }
  Burst(const Burst&) = delete;
  Burst& operator=(const Burst&) = delete;

 private:
  ThreadPool& pool_;
};

}  // namespace

Session::Use::Use(Session& session) {
  if (session.generation_ != fork_generation()) {
    status_ = {StatusCode::kClosed, "session was created before this process forked; load the model anew in the child"};
  } else if (session.in_use_.exchange(true, std::memory_order_acquire)) {
    status_ = {StatusCode::kRuntime, "session is used from two threads at once; create one session for each thread"};
  } else {
    session_ = &session;
  }
}

Session::Use::~Use() {
  if (session_ != nullptr) session_->in_use_.store(false, std::memory_order_release);
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Program> program, int threads, Tuning tuning) {
  if (threads < 0) {
    return Status(StatusCode::kInvalidInput, "threads must not be negative (got " + std::to_string(threads) + ")");
  }
  std::unique_ptr<Session> session(new Session(std::move(program)));
  const int cores = ThreadPool::usable_cpus();
  session->threads_ = threads == 0 ? cores : std::min(threads, cores);
  session->tuning_ = std::move(tuning);
  EK_RETURN_IF_ERROR(session->check_tuning());
  EK_RETURN_IF_ERROR(session->allocate());
  session->states_.resize(session->program_->plans().size());
  EK_RETURN_IF_ERROR(session->select_plan(0));
  return Result<std::unique_ptr<Session>>(std::move(session));
}

Status Session::check_tuning() const {
  const std::vector<Plan>& plans = program_->plans();
  if (!tuning_.empty() && tuning_.size() != plans.size()) {
    return {StatusCode::kInvalidInput, "tuning is of " + std::to_string(tuning_.size()) + " plans (the program has " +
                                           std::to_string(plans.size()) + ")"};
  }
  for (size_t i = 0; i < tuning_.size(); ++i) {
    if (!tuning_[i].empty() && tuning_[i].size() != plans[i].ops.size()) {
      return {StatusCode::kInvalidInput, "tuning is of " + std::to_string(tuning_[i].size()) + " ops (plan " +
                                             std::to_string(i) + " has " + std::to_string(plans[i].ops.size()) + ")"};
    }
    for (size_t op = 0; op < tuning_[i].size(); ++op) {
      const OpTuning& tuned = tuning_[i][op];
      const int ways = way_count(plans[i], plans[i].ops[op], threads_, program_->kernel_isa());
      if (tuned.way < 0 || tuned.way >= ways || tuned.tasks < 0 || tuned.tasks > threads_) {
        return {StatusCode::kInvalidInput, "layer '" + std::string(plans[i].ops[op].name) + "' can't run in way " +
                                               std::to_string(tuned.way) + " on " + std::to_string(tuned.tasks) +
                                               " threads"};
      }
    }
  }
  return Status::ok();
}

OpTuning Session::tuning_of(size_t plan, size_t op) const {
  return plan < tuning_.size() && op < tuning_[plan].size() ? tuning_[plan][op] : OpTuning{};
}

std::vector<std::string> Session::kernels(size_t plan) const {
  const Plan& p = program_->plans()[plan];
  std::vector<std::string> names;
  for (size_t op = 0; op < p.ops.size(); ++op) {
    names.push_back(kernel_name(p, p.ops[op], tuning_of(plan, op).way, program_->kernel_isa()));
  }
  return names;
}

// One allocation serves all plans: only one of them runs at a time.
Status Session::allocate() {
  uint64_t arena_bytes = 0, scratch_bytes = 0;
  for (size_t plan = 0; plan < program_->plans().size(); ++plan) {
    arena_bytes = std::max(arena_bytes, aligned_bytes(program_->plans()[plan].arena_bytes));
    scratch_bytes = std::max(scratch_bytes, scratch_need(plan));
  }
  if (scratch_bytes > kLimitArenaBytes) {
    return {StatusCode::kOutOfMemory, "an op needs " + std::to_string(scratch_bytes) + " bytes of scratch (limit " +
                                          std::to_string(kLimitArenaBytes) + ")"};
  }
  scratch_bytes = aligned_bytes(scratch_bytes);
  Result<AlignedBuffer> memory = AlignedBuffer::allocate(arena_bytes + scratch_bytes + 3 * kGuardBytes, "arena");
  if (!memory.is_ok()) return memory.status();
  memory_ = std::move(memory.value());
  arena_ = memory_.data() + kGuardBytes;
  scratch_ = arena_ + arena_bytes + kGuardBytes;
  return Status::ok();
}

uint64_t Session::scratch_need(size_t index) const {
  const Plan& plan = program_->plans()[index];
  uint64_t most = 0;
  const TensorView* operands[kLimitOperandsPerOp];
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const PlanOp& op = plan.ops[i];
    if (op.def->scratch_bytes == nullptr) continue;
    const OpArgs args = plan_args(plan, op, tuning_of(index, i).way, operands);
    most = std::max<uint64_t>(most, op.def->scratch_bytes(args, threads_, program_->kernel_isa()));
  }
  return most;
}

std::unique_ptr<Session::PlanState> Session::make_state(size_t index) const {
  const Plan& plan = program_->plans()[index];
  auto state = std::make_unique<PlanState>();
  state->tensors = plan.tensors;
  state->buffer_tensors.resize(plan.buffer_bytes.size());
  state->bound.assign(plan.buffer_bytes.size(), false);
  state->unbound = plan.inputs.size() + plan.outputs.size();
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    const uint16_t buffer = plan.tensor_buffer[i];
    if (buffer == 0) {
      state->tensors[i].data = arena_ + plan.tensor_offset[i];
    } else if (buffer >= 2) {
      state->buffer_tensors[buffer].push_back(i);
    }
  }
  size_t operand_count = 0;
  for (const PlanOp& op : plan.ops) operand_count += op.record->input_count + op.record->output_count;
  state->operands.reserve(operand_count);
  state->steps.reserve(plan.ops.size());
  for (const PlanOp& op : plan.ops) {
    const TensorView* const* first = state->operands.data() + state->operands.size();
    for (int i = 0; i < op.record->input_count + op.record->output_count; ++i) {
      state->operands.push_back(op.operands[i] < 0 ? nullptr : &state->tensors[op.operands[i]]);
    }
    const OpTuning tuned = tuning_of(index, state->steps.size());
    state->steps.push_back({op.def, make_args(op, first, tuned.way), nullptr, tuned.tasks});
  }
  return state;
}

// One block holds the state of all ops of the plan.
Status Session::prepare_ops(PlanState& state) const {
  const Isa isa = program_->kernel_isa();
  std::vector<uint64_t> offsets;
  offsets.reserve(state.steps.size());
  uint64_t total = 0;
  for (const Step& step : state.steps) {
    offsets.push_back(total);
    if (step.def->prepare != nullptr) total += aligned_bytes(step.def->state_bytes(step.args, isa));
    if (total > kLimitArenaBytes) {
      return {StatusCode::kOutOfMemory, "the ops keep " + std::to_string(total) + " bytes of state or more (limit " +
                                            std::to_string(kLimitArenaBytes) + ")"};
    }
  }
  Result<AlignedBuffer> memory = AlignedBuffer::allocate(total, "state of the ops");
  if (!memory.is_ok()) return memory.status();
  state.op_state = std::move(memory.value());
  for (size_t i = 0; i < state.steps.size(); ++i) {
    Step& step = state.steps[i];
    if (step.def->prepare == nullptr) continue;
    std::byte* own = state.op_state.data() + offsets[i];
    step.def->prepare(step.args, isa, own);
    step.state = own;
  }
  return Status::ok();
}

Status Session::select_plan(size_t index) {
  if (index >= program_->plans().size()) {
    return {StatusCode::kInvalidInput, "plan " + std::to_string(index) + " does not exist (the program has " +
                                           std::to_string(program_->plans().size()) + ")"};
  }
  if (states_[index] == nullptr) {
    const std::vector<Plan>& plans = program_->plans();
    memory_.populate(plans.size() == 1 ? memory_.size_bytes() : kGuardBytes + plans[index].arena_bytes);
    std::unique_ptr<PlanState> state = make_state(index);
    EK_RETURN_IF_ERROR(prepare_ops(*state));
    state_bytes_ += state->op_state.size_bytes();
    states_[index] = std::move(state);
  }
  selected_ = index;
  return Status::ok();
}

Status Session::bind_input(size_t i, const void* data, uint64_t size_bytes) {
  // The verifier has made sure that no op writes to an input.
  return bind(plan().inputs, i, const_cast<void*>(data), size_bytes, "input");
}

Status Session::bind_output(size_t i, void* data, uint64_t size_bytes) {
  return bind(plan().outputs, i, data, size_bytes, "output");
}

Status Session::bind(const std::vector<PlanValue>& values, size_t i, void* data, uint64_t size_bytes,
                     const char* side) {
  if (i >= values.size()) {
    return {StatusCode::kInvalidInput, std::string(side) + " " + std::to_string(i) + " does not exist (the model has " +
                                           std::to_string(values.size()) + ")"};
  }
  const PlanValue& value = values[i];
  PlanState& state = *states_[selected_];
  const uint64_t expected = plan().buffer_bytes[value.buffer];
  const uintptr_t element_bytes = static_cast<uintptr_t>(dtype_bytes(state.tensors[value.tensor].dtype));
  const auto name = [&] { return std::string(side) + " '" + std::string(value.name) + "': "; };
  if (size_bytes != expected) {
    return {StatusCode::kInvalidInput, name() + "wrong size (got " + std::to_string(size_bytes) + " bytes, expected " +
                                           std::to_string(expected) + ")"};
  }
  if (data == nullptr || reinterpret_cast<uintptr_t>(data) % element_bytes != 0) {
    return {StatusCode::kInvalidInput, name() + "pointer is null or not aligned to the element size"};
  }
  for (uint32_t tensor : state.buffer_tensors[value.buffer]) {
    state.tensors[tensor].data = static_cast<std::byte*>(data) + plan().tensor_offset[tensor];
  }
  if (!state.bound[value.buffer]) --state.unbound;
  state.bound[value.buffer] = true;
  return Status::ok();
}

Status Session::check_bound() const {
  const PlanState& state = *states_[selected_];
  if (state.unbound == 0) return Status::ok();
  for (const auto* values : {&plan().inputs, &plan().outputs}) {
    for (const PlanValue& value : *values) {
      if (!state.bound[value.buffer]) {
        return {StatusCode::kInvalidInput, "'" + std::string(value.name) + "' is not bound to memory"};
      }
    }
  }
  return Status::ok();
}

Status Session::run() { return execute(nullptr); }

Status Session::run_timed(std::vector<int64_t>* op_times_ns) {
  op_times_ns->assign(plan().ops.size(), 0);
  return execute(op_times_ns->data());
}

Status Session::execute(int64_t* op_times_ns) {
  EK_RETURN_IF_ERROR(check_bound());
  ThreadPool& pool = ThreadPool::process();
  RunContext context{pool, threads_, scratch_, program_->kernel_isa()};
  const Burst burst(pool);
  const std::vector<Step>& steps = states_[selected_]->steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t start = op_times_ns == nullptr ? 0 : now_ns();
    context.state = steps[i].state;
    context.tasks = steps[i].tasks;
    context.threads = steps[i].tasks > 0 ? steps[i].tasks : threads_;
    Status status = steps[i].def->run(steps[i].args, context);
    if (op_times_ns != nullptr) op_times_ns[i] = now_ns() - start;
    if (!status.is_ok()) {
      return {status.code(),
              "layer '" + std::string(plan().ops[i].name) + "' (" + steps[i].def->name + "): " + status.message()};
    }
  }
  return Status::ok();
}

std::vector<std::vector<std::string>> kernels_by_way(const Program& program, size_t plan, int threads) {
  const Plan& p = program.plans()[plan];
  std::vector<std::vector<std::string>> kernels;
  for (const PlanOp& op : p.ops) {
    kernels.emplace_back();
    const int ways = way_count(p, op, threads, program.kernel_isa());
    for (int way = 0; way < ways; ++way) kernels.back().push_back(kernel_name(p, op, way, program.kernel_isa()));
  }
  return kernels;
}

uint64_t operand_bytes(const Plan& plan, const PlanOp& op) {
  uint64_t total = 0;
  for (int i = 0; i < op.record->input_count + op.record->output_count; ++i) {
    if (op.operands[i] < 0) continue;
    const TensorView& view = plan.tensors[op.operands[i]];
    uint64_t elements = 1;
    for (int axis = 0; axis < view.rank; ++axis) {
      if (view.strides[axis] != 0) elements *= static_cast<uint64_t>(view.dims[axis]);
    }
    total += elements * static_cast<uint64_t>(dtype_bytes(view.dtype));
  }
  return total;
}

}  // namespace edgekit
