#include "core/thread_pool.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/float_mode.h"
#include "core/fork_generation.h"
#include "tests/check.h"

namespace edgekit {
namespace {

double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Runs `tasks` tasks and tells whether each ran once, on the worker that the static assignment says.
bool runs_each_once(int tasks, int threads) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(tasks));
  std::atomic<bool> assigned{true};
  const int most = std::min({threads, tasks, ThreadPool::usable_cpus()});
  ThreadPool::process().run(tasks, threads, [&](int task, int worker) {
    counts[static_cast<size_t>(task)].fetch_add(1);
    if (worker != task % std::max(1, most)) assigned = false;
  });
  for (const auto& count : counts) {
    if (count.load() != 1) return false;
  }
  return assigned;
}

EK_TEST(every_task_runs_once_on_its_worker) {
  for (int tasks : {0, 1, 2, 3, 7, 64, 1000}) {
    for (int threads : {-1, 0, 1, 2, 3, 8, 1000}) EK_CHECK(runs_each_once(tasks, threads));
  }
}

EK_TEST(runs_inside_a_burst_and_after_it) {
  ThreadPool& pool = ThreadPool::process();
  for (int i = 0; i < 200; ++i) {
    pool.begin_burst();
    pool.begin_burst();
    EK_CHECK(runs_each_once(5, 2));
    pool.end_burst();
    EK_CHECK(runs_each_once(9, 4));
    pool.end_burst();
    EK_CHECK(runs_each_once(3, 3));
  }
}

EK_TEST(a_run_inside_a_task_runs_there) {
  std::atomic<int> inner{0};
  ThreadPool::process().run(4, 4, [&](int, int) {
    const std::thread::id here = std::this_thread::get_id();
    ThreadPool::process().run(3, 3, [&](int, int) { inner += std::this_thread::get_id() == here; });
  });
  EK_CHECK(inner == 12);
}

EK_TEST(callers_on_many_threads_do_not_disturb_each_other) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int k = 0; k < 300; ++k) wrong += !runs_each_once(1 + k % 9, 4);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EK_CHECK(wrong == 0);
}

EK_TEST(denormals_are_flushed_inside_and_the_callers_mode_comes_back) {
  const uint64_t before = float_mode();
  std::atomic<int> flushed{0};
  ThreadPool::process().run(16, 16, [&](int, int) {
    volatile float tiny = 1e-39f;
    volatile float factor = 1.0f;
    flushed += tiny * factor == 0.0f;
  });
  if (flushing_float_mode() == 0) EK_SKIP("this architecture has no mode to flush denormals");
  EK_CHECK(flushed == 16);
  EK_CHECK(float_mode() == before);
  volatile float tiny = 1e-39f;
  volatile float factor = 1.0f;
  EK_CHECK(tiny * factor != 0.0f);
}

EK_TEST(nothing_spins_once_a_run_is_over) {
  EK_CHECK(runs_each_once(64, 8));
  const double before = process_cpu_seconds();
  sleep(1);
  EK_CHECK(process_cpu_seconds() - before < 0.005);
}

EK_TEST(a_forked_child_has_a_pool_of_its_own) {
  EK_CHECK(runs_each_once(64, 8));
  const pid_t child = fork();
  if (child == 0) _exit(fork_generation() == 1 && runs_each_once(64, 8) ? 0 : 1);
  int status = 0;
  EK_CHECK(waitpid(child, &status, 0) == child);
  EK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EK_CHECK(fork_generation() == 0);
  EK_CHECK(runs_each_once(64, 8));
}

// exit() in a child must not wait for the parent's workers.
EK_TEST(a_forked_child_exits) {
  EK_CHECK(runs_each_once(64, 8));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) std::exit(7);
  int status = 0;
  EK_CHECK(waitpid(child, &status, 0) == child);
  EK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

}  // namespace
}  // namespace edgekit
