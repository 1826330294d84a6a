#include "core/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace edgekit {
namespace {

// A core counts as big from this share of the fastest core's capacity (Linux normalises the fastest to 1024; the
// A55 beside an A76 has about 0.4, the A720 beside an X4 about 0.9).
constexpr double kBigShare = 0.6;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_folder(const std::string& root, int cpu) {
  return root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

// CPUs whose capacity is close to the greatest; all of them where Linux does not tell capacities.
std::vector<int> big_cpus(const std::string& root, const std::vector<int>& allowed) {
  std::vector<long> capacities;
  long greatest = 0;
  for (int cpu : allowed) {
    capacities.push_back(std::strtol(first_line(cpu_folder(root, cpu) + "/cpu_capacity").c_str(), nullptr, 10));
    greatest = std::max(greatest, capacities.back());
  }
  std::vector<int> big;
  for (size_t i = 0; i < allowed.size(); ++i) {
    if (static_cast<double>(capacities[i]) >= kBigShare * static_cast<double>(greatest)) big.push_back(allowed[i]);
  }
  return big;
}

// Cores under the CPUs: SMT siblings share one, named by the first number of their sibling list.
int physical_cores(const std::string& root, const std::vector<int>& cpus) {
  std::set<long> cores;
  for (int cpu : cpus) {
    const std::string siblings = first_line(cpu_folder(root, cpu) + "/topology/thread_siblings_list");
    cores.insert(siblings.empty() ? cpu : std::strtol(siblings.c_str(), nullptr, 10));
  }
  return static_cast<int>(cores.size());
}

// Whole CPUs that "quota period" allows, at least 1; no limit: a great number.
int whole_cpus(double quota, double period) {
  constexpr int kUnlimited = 1 << 20;
  if (!(quota > 0) || !(period > 0)) return kUnlimited;
  return std::max(1, static_cast<int>(std::min(quota / period, double{kUnlimited})));
}

int quota_of_group(const std::string& folder) {
  std::istringstream v2(first_line(folder + "/cpu.max"));
  double quota = 0, period = 0;
  if (v2 >> quota >> period) return whole_cpus(quota, period);  // "max 100000" does not parse as a number: no limit
  std::istringstream v1_quota(first_line(folder + "/cpu.cfs_quota_us"));
  std::istringstream v1_period(first_line(folder + "/cpu.cfs_period_us"));
  if ((v1_quota >> quota) && (v1_period >> period)) return whole_cpus(quota, period);
  return whole_cpus(0, 0);
}

// The least quota from the process's control group up to the root, for both versions of cgroups.
int cgroup_quota(const std::string& root) {
  int cpus = whole_cpus(0, 0);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1)
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string base = root + "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
      base += "/cpu";
    }
    std::string path = line.substr(second + 1);
    while (true) {
      cpus = std::min(cpus, quota_of_group(base + path));
      const size_t slash = path.rfind('/');
      if (path.empty() || slash == std::string::npos) break;
      path.resize(slash);
    }
  }
  return cpus;
}

}  // namespace

std::vector<int> affinity_mask() {
  std::vector<int> cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

UsableCpus find_usable_cpus(const std::string& root, const std::vector<int>& allowed) {
  UsableCpus usable;
  usable.ids = big_cpus(root, allowed);
  usable.cores = std::max(1, std::min(physical_cores(root, usable.ids), cgroup_quota(root)));
  return usable;
}

}  // namespace edgekit
