// ek_run: runs a native program on raw tensors, without Python. Linked statically it runs under qemu-user and on bare
// boards. Exit codes: 0, 2 for wrong usage or input, 4 for a CPU that lacks a feature, 1 otherwise.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/cpu_features.h"
#include "engine/package_member.h"
#include "engine/session.h"
#include "tools/ek_run_options.h"
#include "tools/json_line.h"

namespace edgekit {
namespace {

using Clock = std::chrono::steady_clock;

double since_us(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

Result<std::shared_ptr<const Program>> load(const EkRunOptions& options) {
  Result<bool> package = is_package(options.program);
  if (!package.is_ok()) return package.status();
  if (!package.value()) return Program::open(options.program, 0, MappedFile::kToEnd, options.isa);
  Result<Isa> isa = options.isa.has_value() ? Result<Isa>(*options.isa) : active_isa();
  if (!isa.is_ok()) return isa.status();
  Result<MemberRange> member = find_native_program(options.program, isa.value());
  if (!member.is_ok()) return member.status();
  return Program::open(options.program, member.value().offset_bytes, member.value().size_bytes, options.isa);
}

// The bound memory of one session.
struct Buffers {
  std::vector<MappedFile> inputs;
  std::vector<AlignedBuffer> outputs;
};

Status bind_inputs(const EkRunOptions& options, Session* session, Buffers* buffers) {
  const std::vector<PlanValue>& values = session->plan().inputs;
  for (const auto& [name, path] : options.inputs) {
    if (Plan::find(values, name) == nullptr)
      return {StatusCode::kInvalidInput, "the model has no input '" + name + "'"};
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto given = options.inputs.find(std::string(values[i].name));
    if (given == options.inputs.end()) {
      return {StatusCode::kInvalidInput, "--input " + std::string(values[i].name) + "=FILE is missing"};
    }
    Result<MappedFile> file = MappedFile::open(given->second);
    if (!file.is_ok()) return file.status();
    EK_RETURN_IF_ERROR(session->bind_input(i, file.value().data(), file.value().size_bytes()));
    buffers->inputs.push_back(std::move(file.value()));
  }
  return Status::ok();
}

Status bind_outputs(Session* session, Buffers* buffers) {
  const Plan& plan = session->plan();
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    Result<AlignedBuffer> memory = AlignedBuffer::allocate(plan.buffer_bytes[plan.outputs[i].buffer], "output");
    if (!memory.is_ok()) return memory.status();
    EK_RETURN_IF_ERROR(session->bind_output(i, memory.value().data(), memory.value().size_bytes()));
    buffers->outputs.push_back(std::move(memory.value()));
  }
  return Status::ok();
}

// A file name for an output: its index keeps it unique, and nothing in a hostile name can leave the folder.
std::string file_name(size_t index, std::string_view name) {
  std::string out = std::to_string(index) + "-";
  for (const char c : name.substr(0, 100)) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
    out += plain ? c : '_';
  }
  return out + ".bin";
}

// Writes the outputs where asked for, and describes them.
Status write_outputs(const EkRunOptions& options, const Session& session, const Buffers& buffers, std::string* json) {
  const Plan& plan = session.plan();
  JsonArray list;
  if (!options.output_dir.empty()) mkdir(options.output_dir.c_str(), 0777);
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const TensorView& view = plan.tensors[plan.outputs[i].tensor];
    JsonArray shape;
    for (int axis = 0; axis < view.rank; ++axis) shape.add(std::to_string(view.dims[axis]));
    JsonObject item;
    item.text("name", plan.outputs[i].name).text("dtype", name_of(view.dtype)).raw("shape", shape.str());
    if (!options.output_dir.empty()) {
      const std::string path = options.output_dir + "/" + file_name(i, plan.outputs[i].name);
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      file.write(reinterpret_cast<const char*>(buffers.outputs[i].data()),
                 static_cast<std::streamsize>(buffers.outputs[i].size_bytes()));
      file.close();
      if (!file) return {StatusCode::kIo, path + ": can't be written"};
      item.text("file", path);
    }
    list.add(item.str());
  }
  *json = list.str();
  return Status::ok();
}

std::string describe_layers(const Session& session, const std::vector<int64_t>& times_ns) {
  JsonArray list;
  const std::vector<PlanOp>& ops = session.plan().ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    JsonObject item;
    item.text("name", ops[i].name)
        .text("op", ops[i].def->name)
        .number("time_us", static_cast<double>(times_ns[i]) / 1e3);
    item.integer("macs", static_cast<int64_t>(ops[i].record->macs));
    list.add(item.str());
  }
  return list.str();
}

Status run(const EkRunOptions& options) {
  const Clock::time_point start = Clock::now();
  Result<std::shared_ptr<const Program>> program = load(options);
  if (!program.is_ok()) return program.status();
  Result<std::unique_ptr<Session>> created = Session::create(program.value(), options.threads);
  if (!created.is_ok()) return created.status();
  Session& session = *created.value();
  const double load_us = since_us(start);
  EK_RETURN_IF_ERROR(session.select_plan(options.plan));
  Buffers buffers;
  EK_RETURN_IF_ERROR(bind_inputs(options, &session, &buffers));
  EK_RETURN_IF_ERROR(bind_outputs(&session, &buffers));
  std::vector<double> times_us;
  for (int i = 0; i < options.repeat; ++i) {
    const Clock::time_point begin = Clock::now();
    EK_RETURN_IF_ERROR(session.run());
    times_us.push_back(since_us(begin));
  }
  JsonObject report;
  report.text("isa", name_of(program.value()->isa())).text("kernels", name_of(program.value()->kernel_isa()));
  report.integer("threads", session.threads()).number("load_us", load_us).number("first_run_us", times_us.front());
  std::sort(times_us.begin(), times_us.end());
  report.integer("runs", options.repeat).number("min_us", times_us.front());
  report.number("median_us", times_us[times_us.size() / 2]);
  if (options.layers) {
    std::vector<int64_t> op_times_ns;
    EK_RETURN_IF_ERROR(session.run_timed(&op_times_ns));
    report.raw("layers", describe_layers(session, op_times_ns));
  }
  std::string outputs;
  EK_RETURN_IF_ERROR(write_outputs(options, session, buffers, &outputs));
  std::printf("%s\n", report.raw("outputs", outputs).str().c_str());
  return Status::ok();
}

int exit_code(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidProgram:
    case StatusCode::kInvalidInput:
      return 2;
    case StatusCode::kUnsupportedIsa:
    case StatusCode::kIo:
    case StatusCode::kOutOfMemory:
      return 4;
    default:
      return 1;
  }
}

}  // namespace
}  // namespace edgekit

int main(int argument_count, char** arguments) {
  if (argument_count == 2 && std::string_view(arguments[1]) == "--help") {
    std::fputs(edgekit::kEkRunUsage, stdout);
    return 0;
  }
  const edgekit::Result<edgekit::EkRunOptions> options = edgekit::parse_ek_run(argument_count, arguments);
  const edgekit::Status status = options.is_ok() ? edgekit::run(options.value()) : options.status();
  if (!status.is_ok()) std::fprintf(stderr, "ek_run: %s\n", status.message().c_str());
  return edgekit::exit_code(status.code());
}
