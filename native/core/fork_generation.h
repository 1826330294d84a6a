// Tells a process from the child it forked: threads do not survive a fork, so what was started before it is unusable.
#ifndef EDGEKIT_CORE_FORK_GENERATION_H_
#define EDGEKIT_CORE_FORK_GENERATION_H_

namespace edgekit {

// 0 in the process that loaded the library, one more in each generation of forked children. Costs one load.
int fork_generation() noexcept;

}  // namespace edgekit

#endif  // EDGEKIT_CORE_FORK_GENERATION_H_
