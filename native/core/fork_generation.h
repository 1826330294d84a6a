// Tells a process from the child it forked: threads do not survive a fork, so what was started before it is unusable.
#ifndef EDGEKIT_CORE_FORK_GENERATION_H_
#define EDGEKIT_CORE_FORK_GENERATION_H_

#include <thread>

namespace edgekit {

// 0 in the process that loaded the library, one more in each generation of forked children. Costs one load.
int fork_generation() noexcept;

// For the owner of a thread that was started in that generation: true in a forked child, where the thread is not; its
// handle is let go then, as joining it would wait for ever.
bool lost_in_fork(int generation_of_start, std::thread* thread);

}  // namespace edgekit

#endif  // EDGEKIT_CORE_FORK_GENERATION_H_
