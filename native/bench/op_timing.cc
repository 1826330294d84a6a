#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "bench/bench_op.h"
#include "core/aligned_buffer.h"
#include "core/float_mode.h"

namespace edgekit::bench {
namespace {

AlignedBuffer allocate(size_t bytes) {
  Result<AlignedBuffer> memory = AlignedBuffer::allocate(bytes, "benchmark");
  if (memory.is_ok()) return std::move(memory.value());
  std::fprintf(stderr, "%s\n", memory.status().message().c_str());
  std::exit(1);
}

}  // namespace

double now_ns(int threads) {
  timespec now{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

bool take_option(int count, char** arguments, int& i, BenchOptions& options) {
  const std::string key = arguments[i], value = i + 1 < count ? arguments[i + 1] : "";
  if (key == "--isa" && parse_isa(value).is_ok() && check_isa_supported(parse_isa(value).value()).is_ok()) {
    options.isa = parse_isa(value).value();
  } else if (key == "--threads" && std::atoi(value.c_str()) > 0) {
    options.threads = std::atoi(value.c_str());
  } else if (key == "--filter") {
    options.filter = value;
  } else {
    return false;
  }
  ++i;
  return true;
}

TensorView dense(void* data, Dtype dtype, std::initializer_list<int32_t> dims) {
  TensorView v;
  v.data = data;
  v.dtype = dtype;
  for (const int32_t dim : dims) v.dims[v.rank++] = dim;
  int64_t stride = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    v.strides[i] = stride;
    stride *= v.dims[i];
  }
  return v;
}

double best_op_ns(const char* name, const OpDef& op, const OpArgs& args, const BenchOptions& options) {
  if (const Status status = op.check(args); !status.is_ok()) {
    std::fprintf(stderr, "%s: %s\n", name, status.message().c_str());
    std::exit(1);
  }
  const FlushDenormals flushing;
  AlignedBuffer state = allocate(op.prepare != nullptr ? op.state_bytes(args, options.isa) : 0);
  if (op.prepare != nullptr) op.prepare(args, options.isa, state.data());
  AlignedBuffer scratch =
      allocate(op.scratch_bytes != nullptr ? op.scratch_bytes(args, options.threads, options.isa) : 0);
  RunContext context{ThreadPool::process(), options.threads, scratch.data(), options.isa, state.data()};
  ThreadPool::process().begin_burst();
  const double ns = best_ns(options.threads, [&] { (void)op.run(args, context).is_ok(); });
  ThreadPool::process().end_burst();
  return ns;
}

}  // namespace edgekit::bench
