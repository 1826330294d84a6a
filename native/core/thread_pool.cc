#include "core/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/cpu_topology.h"
#include "core/float_mode.h"
#include "core/fork_generation.h"
#include "core/parking.h"

namespace edgekit {
namespace {

constexpr int kMaxWorkers = 63;
// Long enough to bridge the serial stretches between two parallel ops, far too short to be seen on an idle machine.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kPausesPerClockRead = 32;
// Padding between what different threads write: two cache lines, as adjacent lines are fetched in pairs.
constexpr size_t kLinePair = 128;

// Spins until done() or the time is over; tells whether done() became true.
template <typename Done>
bool spin_until(Done done) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (done()) return true;
      spin_pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return done();
}

// One call of run(): tasks dealt to `threads` logical workers, those dealt to `executors` threads.
struct alignas(kLinePair) Job {
  static constexpr uint32_t kCallerParked = 1u << 31;

  ThreadPool::TaskFn fn = nullptr;
  void* context = nullptr;
  int tasks = 0;
  int threads = 1;
  int executors = 1;
  alignas(kLinePair) std::atomic<uint32_t> pending{0};  // workers still at it, and kCallerParked

  void execute(int executor) const {
    for (int worker = executor; worker < threads; worker += executors) {
      for (int task = worker; task < tasks; task += threads) fn(context, task, worker);
    }
  }
  void finish() noexcept {
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == (kCallerParked | 1)) unpark_all(&pending);
  }
  void wait() noexcept {
    if (spin_until([this] { return pending.load(std::memory_order_acquire) == 0; })) return;
    uint32_t now = pending.fetch_or(kCallerParked, std::memory_order_acq_rel) | kCallerParked;
    while (now != kCallerParked) {
      park(&pending, now);
      now = pending.load(std::memory_order_acquire);
    }
  }
};

struct alignas(kLinePair) Worker {
  std::thread thread;
  alignas(kLinePair) std::atomic<uint32_t> ticket{0};  // one more for each job given
  std::atomic<bool> parked{false};
  std::atomic<bool> leased{false};
  Job* job = nullptr;
  int executor = 0;

  void give(Job* next_job, int next_executor) noexcept {
    job = next_job;
    executor = next_executor;
    wake();
  }
  void wake() noexcept {
    ticket.fetch_add(1, std::memory_order_seq_cst);
    if (parked.load(std::memory_order_seq_cst)) unpark_all(&ticket);
  }
  // Returns the next ticket after seen.
  uint32_t await(uint32_t seen) noexcept {
    const auto called = [&] { return ticket.load(std::memory_order_acquire) != seen; };
    spin_until([&] { return called() || !leased.load(std::memory_order_relaxed); });
    if (!called()) {
      parked.store(true, std::memory_order_seq_cst);
      while (ticket.load(std::memory_order_seq_cst) == seen) park(&ticket, seen);
      parked.store(false, std::memory_order_relaxed);
    }
    return ticket.load(std::memory_order_acquire);
  }
};

// What a calling thread holds between begin_burst() and end_burst().
struct Caller {
  int depth = 0;
  int generation = 0;
  bool inside_task = false;
  uint64_t float_mode = 0;
  uint64_t leased = 0;  // bit i: worker i
  Job job;
};

Caller& caller() noexcept {
  static thread_local Caller state;
  return state;
}

void serve(Worker* worker, const std::atomic<bool>* stopping) {
  set_float_mode(flushing_float_mode());
  caller().inside_task = true;
  for (uint32_t seen = 0;;) {
    seen = worker->await(seen);
    if (Job* job = std::exchange(worker->job, nullptr)) {
      job->execute(worker->executor);
      job->finish();
    }
    if (stopping->load(std::memory_order_acquire)) return;
  }
}

// Keeps the application's signals off the workers for as long as it lives.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace

struct ThreadPool::Impl {
  const int generation = fork_generation();
  const UsableCpus cpus = find_usable_cpus("", affinity_mask());
  const int capacity = std::min(cpus.cores - 1, kMaxWorkers);
  std::atomic<int> started{0};
  std::atomic<bool> stopping{false};
  std::atomic<uint64_t> idle{0};  // bit i: worker i runs and nobody leases it
  std::atomic<int> bursts{0};     // calling threads inside a burst
  std::mutex start_mutex;
  std::array<Worker, kMaxWorkers> workers;

  // Starts workers until there are `wanted` (at most capacity), or the system gives no more threads.
  void start(int wanted) noexcept {
    wanted = std::min(wanted, capacity);
    if (started.load(std::memory_order_acquire) >= wanted) return;
    const std::lock_guard<std::mutex> lock(start_mutex);
    const BlockSignals blocked;
    for (int i = started.load(std::memory_order_relaxed); i < wanted && !stopping.load(); ++i) {
      try {
        workers[i].thread = std::thread(serve, &workers[i], &stopping);
      } catch (const std::system_error&) {
        return;
      }
      place(workers[i].thread.native_handle(), i);
      started.store(i + 1, std::memory_order_release);
      idle.fetch_or(uint64_t{1} << i, std::memory_order_release);
    }
  }

  // All big cores are allowed to each worker: pinning one to one would put two processes on the same cores.
  void place(pthread_t thread, int index) const noexcept {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int cpu : cpus.ids) CPU_SET(cpu, &mask);
    pthread_setaffinity_np(thread, sizeof(mask), &mask);
    const std::string name = "edgekit-" + std::to_string(index);
    pthread_setname_np(thread, name.c_str());
  }

  void release(Caller& state) noexcept {
    if (state.leased == 0) return;
    for (uint64_t rest = state.leased; rest != 0; rest &= rest - 1) {
      workers[__builtin_ctzll(rest)].leased.store(false, std::memory_order_relaxed);
    }
    idle.fetch_or(state.leased, std::memory_order_release);
    state.leased = 0;
  }

  // Brings the caller's lease towards `wanted` workers and returns how many it holds. Cores are shared with the
  // other threads that run at the same time: together they never use more threads than there are cores.
  int lease(Caller& state, int wanted) noexcept {
    const int others = bursts.load(std::memory_order_relaxed) - 1;
    wanted = std::min(wanted, std::max(0, capacity - others));
    int held = __builtin_popcountll(state.leased);
    if (held > std::max(0, capacity - others)) {
      release(state);
      held = 0;
    }
    if (held < wanted) start(wanted);
    uint64_t available = idle.load(std::memory_order_relaxed);
    while (held < wanted && available != 0) {
      const uint64_t bit = available & (~available + 1);
      if (!idle.compare_exchange_weak(available, available & ~bit, std::memory_order_acquire)) continue;
      available &= ~bit;
      workers[__builtin_ctzll(bit)].leased.store(true, std::memory_order_relaxed);
      state.leased |= bit;
      ++held;
    }
    return std::min(held, wanted);
  }

  void stop() noexcept {
    stopping.store(true, std::memory_order_release);
    const std::lock_guard<std::mutex> lock(start_mutex);
    idle.store(0);
    for (int i = 0; i < started.load(); ++i) {
      workers[i].wake();
      workers[i].thread.join();
    }
    started.store(0);
  }
};

ThreadPool::ThreadPool() { impl_.store(new Impl, std::memory_order_release); }

ThreadPool::~ThreadPool() {
  Impl* impl = impl_.load(std::memory_order_acquire);
  if (impl->generation != fork_generation()) return;  // the workers live in the parent only: nothing to join here
  impl->stop();  // the rest stays: another thread may still be running, and then does its tasks alone
}

ThreadPool& ThreadPool::process() {
  static ThreadPool pool;
  return pool;
}

int ThreadPool::usable_cpus() { return process().impl().capacity + 1; }

ThreadPool::Impl& ThreadPool::impl() noexcept {
  Impl* current = impl_.load(std::memory_order_acquire);
  if (current->generation == fork_generation()) return *current;
  Impl* fresh = new Impl;  // the parent's one is leaked: its threads and locks can't be touched here
  if (impl_.compare_exchange_strong(current, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *current;
}

void ThreadPool::begin_burst() noexcept {
  Caller& state = caller();
  Impl& pool = impl();
  if (state.generation != pool.generation) {
    state.generation = pool.generation;
    state.depth = 0;
    state.leased = 0;
  }
  if (state.depth++ > 0) return;
  pool.bursts.fetch_add(1, std::memory_order_relaxed);
  state.float_mode = float_mode();
  set_float_mode(flushing_float_mode());
}

void ThreadPool::end_burst() noexcept {
  Caller& state = caller();
  if (--state.depth > 0) return;
  Impl& pool = impl();
  pool.release(state);
  pool.bursts.fetch_sub(1, std::memory_order_relaxed);
  set_float_mode(state.float_mode);
}

void ThreadPool::run(int tasks, int threads, TaskFn fn, void* context) noexcept {
  if (tasks <= 0) return;
  Caller& state = caller();
  if (state.inside_task) {
    threads = std::max(1, threads);
    for (int task = 0; task < tasks; ++task) fn(context, task, task % threads);
    return;
  }
  begin_burst();
  Impl& pool = impl();
  Job& job = state.job;
  job.fn = fn;
  job.context = context;
  job.tasks = tasks;
  job.threads = std::max(1, std::min({threads, tasks, pool.capacity + 1}));
  job.executors = 1;
  if (job.threads > 1 && !pool.stopping.load(std::memory_order_relaxed)) {
    job.executors += pool.lease(state, job.threads - 1);
  }
  job.pending.store(static_cast<uint32_t>(job.executors - 1), std::memory_order_relaxed);
  int executor = 0;
  for (uint64_t rest = state.leased; rest != 0 && executor + 1 < job.executors; rest &= rest - 1) {
    pool.workers[__builtin_ctzll(rest)].give(&job, ++executor);
  }
  state.inside_task = true;
  job.execute(0);
  state.inside_task = false;
  if (job.executors > 1) job.wait();
  end_burst();
}

}  // namespace edgekit
