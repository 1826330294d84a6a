// The C interface (edgekit.h) on top of Program and Session.
#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu_features.h"
#include "core/fork_generation.h"
#include "edgekit/edgekit.h"
#include "engine/async_run.h"
#include "engine/package_member.h"
#include "engine/program.h"
#include "engine/session.h"

namespace edgekit {
const char* version_string();

namespace {

static_assert(static_cast<int>(StatusCode::kInvalidProgram) == EK_INVALID_PROGRAM);
static_assert(static_cast<int>(StatusCode::kInvalidInput) == EK_INVALID_INPUT);
static_assert(static_cast<int>(StatusCode::kUnsupportedIsa) == EK_UNSUPPORTED_ISA);
static_assert(static_cast<int>(StatusCode::kOutOfMemory) == EK_OUT_OF_MEMORY);
static_assert(static_cast<int>(StatusCode::kIo) == EK_IO_ERROR);
static_assert(static_cast<int>(StatusCode::kRuntime) == EK_RUNTIME_ERROR);
static_assert(static_cast<int>(StatusCode::kClosed) == EK_CLOSED);
static_assert(static_cast<int>(Dtype::kBool) == EK_BOOL && EK_MAX_RANK == kMaxRank);

// A program with its value names as C strings; all plans have the same names.
struct LoadedModel {
  explicit LoadedModel(std::shared_ptr<const Program> loaded) : program(std::move(loaded)) {
    for (const PlanValue& value : program->plans().front().inputs) input_names.emplace_back(value.name);
    for (const PlanValue& value : program->plans().front().outputs) output_names.emplace_back(value.name);
  }
  std::shared_ptr<const Program> program;
  std::vector<std::string> input_names, output_names;
};

std::string& last_error() {
  static thread_local std::string message;
  return message;
}

ek_status fail(ek_status code, const char* message) noexcept {
  try {
    last_error() = message;
  } catch (const std::bad_alloc&) {
    last_error().clear();
  }
  return code;
}

// Runs a call that gives a Status; no exception gets out.
template <typename Call>
ek_status guarded(Call call) noexcept {
  try {
    const Status status = call();
    return status.is_ok() ? EK_OK : fail(static_cast<ek_status>(status.code()), status.message().c_str());
  } catch (const std::bad_alloc&) {
    return fail(EK_OUT_OF_MEMORY, "no memory");
  }
}

Status null_argument() { return {StatusCode::kInvalidInput, "an argument is null"}; }

Result<std::shared_ptr<const Program>> open_program(const std::string& path, const char* isa_name) {
  Result<Isa> isa = isa_name == nullptr ? active_isa() : parse_isa(isa_name);
  if (!isa.is_ok()) return isa.status();
  Result<bool> package = is_package(path);
  if (!package.is_ok()) return package.status();
  if (!package.value()) return Program::open(path, 0, MappedFile::kToEnd, isa.value());
  Result<MemberRange> member = find_native_program(path, isa.value());
  if (!member.is_ok()) return member.status();
  return Program::open(path, member.value().offset_bytes, member.value().size_bytes, isa.value());
}

}  // namespace
}  // namespace edgekit

struct ek_model {
  std::shared_ptr<const edgekit::LoadedModel> loaded;
};

struct ek_session {
  std::shared_ptr<const edgekit::LoadedModel> loaded;
  std::unique_ptr<edgekit::Session> session;
  std::unique_ptr<edgekit::AsyncRun> async;
  int generation = edgekit::fork_generation();

  ~ek_session() {
    // A forked child has no such thread: joining it, or destroying what it waits on, would hang.
    if (generation != edgekit::fork_generation()) static_cast<void>(async.release());
  }
};

namespace edgekit {
namespace {

// A call that holds the session for its duration.
template <typename Call>
ek_status with_session(ek_session* session, Call call) noexcept {
  return guarded([&]() -> Status {
    if (session == nullptr) return null_argument();
    const Session::Use use(*session->session);
    if (!use.status().is_ok()) return use.status();
    return call(*session->session);
  });
}

ek_status fill_info(const ek_session* session, bool input, size_t index, ek_tensor_info* info) noexcept {
  return guarded([&]() -> Status {
    if (session == nullptr || info == nullptr) return null_argument();
    const Plan& plan = session->session->plan();
    const std::vector<PlanValue>& values = input ? plan.inputs : plan.outputs;
    if (index >= values.size()) {
      return {StatusCode::kInvalidInput, std::string(input ? "input " : "output ") + std::to_string(index) +
                                             " does not exist (the model has " + std::to_string(values.size()) + ")"};
    }
    const TensorView& view = plan.tensors[values[index].tensor];
    const auto& names = input ? session->loaded->input_names : session->loaded->output_names;
    *info = ek_tensor_info{};
    info->name = names[index].c_str();
    info->dtype = static_cast<ek_dtype>(view.dtype);
    info->rank = view.rank;
    std::copy(view.dims, view.dims + view.rank, info->dims);
    info->size_bytes = plan.buffer_bytes[values[index].buffer];
    info->scale = view.scale;
    info->zero_point = view.zero_point;
    return Status::ok();
  });
}

}  // namespace
}  // namespace edgekit

using edgekit::Session;
using edgekit::Status;

const char* ek_version(void) { return edgekit::version_string(); }

const char* ek_last_error(void) { return edgekit::last_error().c_str(); }

const char* ek_active_isa(void) {
  const edgekit::Result<edgekit::Isa> isa = edgekit::active_isa();
  return edgekit::name_of(isa.is_ok() ? isa.value() : edgekit::best_isa());
}

ek_status ek_model_open(const char* path, const char* isa, ek_model** model) {
  return edgekit::guarded([&]() -> Status {
    if (path == nullptr || model == nullptr) return edgekit::null_argument();
    *model = nullptr;
    auto program = edgekit::open_program(path, isa);
    if (!program.is_ok()) return program.status();
    *model = new ek_model{std::make_shared<const edgekit::LoadedModel>(std::move(program.value()))};
    return Status::ok();
  });
}

void ek_model_free(ek_model* model) { delete model; }

const char* ek_model_isa(const ek_model* model) {
  return model == nullptr ? "" : edgekit::name_of(model->loaded->program->isa());
}

size_t ek_model_plan_count(const ek_model* model) {
  return model == nullptr ? 0 : model->loaded->program->plans().size();
}

ek_status ek_session_create(const ek_model* model, int threads, ek_session** session) {
  return edgekit::guarded([&]() -> Status {
    if (model == nullptr || session == nullptr) return edgekit::null_argument();
    *session = nullptr;
    auto created = Session::create(model->loaded->program, threads);
    if (!created.is_ok()) return created.status();
    auto handle = std::make_unique<ek_session>();
    handle->loaded = model->loaded;
    handle->session = std::move(created.value());
    handle->async = std::make_unique<edgekit::AsyncRun>(*handle->session);
    *session = handle.release();
    return Status::ok();
  });
}

void ek_session_free(ek_session* session) { delete session; }

ek_status ek_select_plan(ek_session* session, size_t plan) {
  return edgekit::with_session(session, [&](Session& held) { return held.select_plan(plan); });
}

size_t ek_input_count(const ek_session* session) {
  return session == nullptr ? 0 : session->session->plan().inputs.size();
}

size_t ek_output_count(const ek_session* session) {
  return session == nullptr ? 0 : session->session->plan().outputs.size();
}

ek_status ek_input_info(const ek_session* session, size_t index, ek_tensor_info* info) {
  return edgekit::fill_info(session, true, index, info);
}

ek_status ek_output_info(const ek_session* session, size_t index, ek_tensor_info* info) {
  return edgekit::fill_info(session, false, index, info);
}

ek_status ek_bind_input(ek_session* session, size_t index, const void* data, uint64_t size_bytes) {
  return edgekit::with_session(session, [&](Session& held) { return held.bind_input(index, data, size_bytes); });
}

ek_status ek_bind_output(ek_session* session, size_t index, void* data, uint64_t size_bytes) {
  return edgekit::with_session(session, [&](Session& held) { return held.bind_output(index, data, size_bytes); });
}

ek_status ek_run(ek_session* session) {
  return edgekit::with_session(session, [](Session& held) { return held.run(); });
}

ek_status ek_submit(ek_session* session) {
  return edgekit::guarded([&]() -> Status {
    if (session == nullptr) return edgekit::null_argument();
    if (session->generation != edgekit::fork_generation()) {
      return {edgekit::StatusCode::kClosed, "session was created before this process forked; open the model anew"};
    }
    return session->async->submit();
  });
}

ek_status ek_wait(ek_session* session, int64_t timeout_ms) {
  bool timed_out = false;
  const ek_status status = edgekit::guarded([&]() -> Status {
    if (session == nullptr) return edgekit::null_argument();
    if (session->generation != edgekit::fork_generation()) {
      return {edgekit::StatusCode::kClosed, "session was created before this process forked; open the model anew"};
    }
    constexpr int64_t kLongest = int64_t{1000} * 3600 * 24 * 365;  // far from overflow when converted to a time point
    const std::optional<Status> result =
        session->async->wait(std::chrono::milliseconds(std::min(timeout_ms, kLongest)));
    timed_out = !result.has_value();
    return result.value_or(Status::ok());
  });
  return timed_out ? edgekit::fail(EK_TIMEOUT, "the run is not done yet") : status;
}
