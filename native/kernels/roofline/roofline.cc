#include "kernels/roofline/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/cpu_features.h"
#include "core/thread_pool.h"

namespace edgekit {
namespace {

constexpr RooflineKernels kKernels[] = {
#define EK_ROOFLINE(space, isa) {"roofline_" #space, Isa::isa, space::int8_macs, space::fp32_macs},
#include "kernels/roofline/kernels.inc"
#undef EK_ROOFLINE
};

constexpr int kRepetitions = 5;
constexpr double kRepetitionSeconds = 0.02;
constexpr int kWorkerStride = 16;  // results of workers on lines of their own

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Sum of 64-bit words in four chains; the result must be used, or the loads go.
uint64_t sum_words(const uint64_t* words, int64_t count) noexcept {
  uint64_t sums[4] = {};
  for (int64_t i = 0; i + 4 <= count; i += 4) {
    for (int chain = 0; chain < 4; ++chain) sums[chain] += words[i + chain];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

RooflineTable roofline_kernels() { return {kKernels, kKernels + sizeof(kKernels) / sizeof(kKernels[0])}; }

const RooflineKernels& select_roofline(Isa isa) {
  const RooflineKernels* chosen = kKernels;
  for (const RooflineKernels& kernels : kKernels) {
    if (isa_includes(isa, kernels.isa)) chosen = &kernels;
  }
  return *chosen;
}

double measure_gmac_s(int64_t (*kernel)(int64_t rounds) noexcept, int threads) {
  ThreadPool& pool = ThreadPool::process();
  std::vector<int64_t> macs(static_cast<size_t>(threads) * kWorkerStride);
  int64_t rounds = 1 << 12;
  double best = 0.0;
  for (int repetition = 0; repetition < kRepetitions;) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(threads, threads,
             [&](int task, int) { macs[static_cast<size_t>(task) * kWorkerStride] = kernel(rounds); });
    const double seconds = seconds_since(start);
    if (seconds < kRepetitionSeconds / 2) {  // too short to time: not counted
      rounds *= 2;
      continue;
    }
    double total = 0.0;
    for (int task = 0; task < threads; ++task)
      total += static_cast<double>(macs[static_cast<size_t>(task) * kWorkerStride]);
    best = std::max(best, total / seconds / 1e9);
    ++repetition;
  }
  return best;
}

Result<double> measure_read_gb_s(int64_t buffer_bytes, int threads) {
  Result<AlignedBuffer> buffer = AlignedBuffer::allocate(static_cast<size_t>(buffer_bytes), "the bandwidth buffer");
  if (!buffer.is_ok()) return buffer.status();
  std::memset(buffer.value().data(), 1, buffer.value().size_bytes());  // untouched pages would all be one zero page
  const auto* words = reinterpret_cast<const uint64_t*>(buffer.value().data());
  const int64_t share = buffer_bytes / 8 / threads;
  ThreadPool& pool = ThreadPool::process();
  std::vector<uint64_t> sums(static_cast<size_t>(threads) * kWorkerStride);
  double best = 0.0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(threads, threads, [&](int task, int) {
      sums[static_cast<size_t>(task) * kWorkerStride] += sum_words(words + task * share, share);
    });
    best = std::max(best, static_cast<double>(share) * 8.0 * threads / seconds_since(start) / 1e9);
  }
  uint64_t check = 0;
  for (uint64_t sum : sums) check += sum;
  if (check == 0) return Status(StatusCode::kRuntime, "the bandwidth buffer reads as zeros");
  return best;
}

}  // namespace edgekit
