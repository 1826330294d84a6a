// How ops share their work among the threads of a run.
#ifndef EDGEKIT_KERNELS_PARALLEL_H_
#define EDGEKIT_KERNELS_PARALLEL_H_

#include <algorithm>
#include <cstdint>

#include "kernels/op.h"

namespace edgekit {

// Waking a worker and meeting it again costs some microseconds, so a piece of work below this is not worth sharing. Not
// far below, though: one core alone has to fetch what the others left in their caches, and they what it leaves in its.
inline constexpr double kLeastTaskNs = 4000.0;

// Into how many tasks `units` pieces of `unit_ns` nanoseconds each should be cut: one while it all takes under about
// 8 us, and never more than threads; or as many as a tuned session says.
inline int task_count(const RunContext& context, int64_t units, double unit_ns) {
  if (context.tasks > 0) return static_cast<int>(std::min<int64_t>(units, std::min(context.tasks, context.threads)));
  const double tasks = static_cast<double>(units) * unit_ns / kLeastTaskNs;
  const int64_t most = std::min<int64_t>(units, context.threads);
  return static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(most, static_cast<int64_t>(std::min(tasks, 1e6)))));
}

// Calls body(int64_t begin, int64_t end, int worker) on consecutive ranges that cover [0, units), one range a task.
// unit_ns is a rough cost of one unit and only decides how many tasks there are; the ranges given to different calls
// never overlap, so a body that writes only its own units gives the same bits with any number of threads.
template <typename Body>
void parallel_for(RunContext& context, int64_t units, double unit_ns, Body&& body) {
  const int tasks = task_count(context, units, unit_ns);
  if (tasks == 1) {
    body(int64_t{0}, units, 0);
    return;
  }
  context.pool.run(tasks, tasks, [&](int task, int worker) {
    const int64_t begin = units * task / tasks;
    const int64_t end = units * (task + 1) / tasks;
    if (begin < end) body(begin, end, worker);
  });
}

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_PARALLEL_H_
