// The process-wide pool of worker threads. Workers spin shortly for the next piece of work of a run, then park;
// nothing spins once the outermost run has ended.
#ifndef EDGEKIT_CORE_THREAD_POOL_H_
#define EDGEKIT_CORE_THREAD_POOL_H_

#include <atomic>

namespace edgekit {

class ThreadPool {
 public:
  // fn(context, task, worker): worker is in [0, threads) and unique among concurrently running calls of one run.
  using TaskFn = void (*)(void* context, int task, int worker);

  // The one pool of this process; sized by the CPUs the process may use (affinity mask and cgroup quota).
  static ThreadPool& process();
  static int usable_cpus();

  // Runs tasks 0 .. tasks-1 on at most `threads` threads, the caller being worker 0; returns when all are done.
  // Task t runs on worker t % threads, so that results never depend on timing. threads is capped by the pool's size;
  // workers flush denormals to zero, and the caller's floating-point mode is restored on return. When other threads of
  // the process run too, each gets fewer workers, down to none: the tasks then run on the caller, with the same worker
  // numbers. A run from inside a task runs on the thread it is called from.
  void run(int tasks, int threads, TaskFn fn, void* context) noexcept;

  // The same with any callable void(int task, int worker).
  template <typename F>
  void run(int tasks, int threads, F&& body) noexcept {
    run(tasks, threads, [](void* context, int task, int worker) { (*static_cast<F*>(context))(task, worker); }, &body);
  }

  // The engine brackets one inference with these: between them workers may spin and the calling thread flushes
  // denormals to zero; outside, workers are parked and the thread's floating-point mode is what it was. They nest.
  void begin_burst() noexcept;
  void end_burst() noexcept;

  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

 private:
  ThreadPool();
  struct Impl;
  Impl& impl() noexcept;  // made anew in a forked child, where the parent's workers do not exist
  std::atomic<Impl*> impl_{nullptr};
};

}  // namespace edgekit

#endif  // EDGEKIT_CORE_THREAD_POOL_H_
