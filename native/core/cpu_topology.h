// Which CPUs this process may use for inference: affinity mask, cgroup quota, big cores only, one thread a core.
#ifndef EDGEKIT_CORE_CPU_TOPOLOGY_H_
#define EDGEKIT_CORE_CPU_TOPOLOGY_H_

#include <string>
#include <vector>

namespace edgekit {

struct UsableCpus {
  std::vector<int> ids;  // CPUs a worker may run on: in the affinity mask and big (SMT siblings included)
  int cores = 1;         // workers that make sense at once, the caller included: physical cores, capped by the quota
};

// Reads the machine. root is prepended to /sys and /proc paths, so that a test can give a tree of its own;
// allowed are the CPUs of the affinity mask.
UsableCpus find_usable_cpus(const std::string& root, const std::vector<int>& allowed);

// CPUs in the affinity mask of the calling thread.
std::vector<int> affinity_mask();

}  // namespace edgekit

#endif  // EDGEKIT_CORE_CPU_TOPOLOGY_H_
