#include "core/cpu_topology.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/check.h"

namespace edgekit {
namespace {

namespace fs = std::filesystem;

// A tree of /sys and /proc files in the temporary folder.
class FakeMachine {
 public:
  FakeMachine() {
    std::string pattern = (fs::temp_directory_path() / "edgekit-machine-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
  }
  ~FakeMachine() { fs::remove_all(root_); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  void write(const std::string& path, const std::string& text) {
    const fs::path file = fs::path(root_ + path);
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void capacity(int cpu, int value) { write(cpu_file(cpu, "cpu_capacity"), std::to_string(value)); }
  void siblings(int cpu, const std::string& list) { write(cpu_file(cpu, "topology/thread_siblings_list"), list); }
  UsableCpus find(const std::vector<int>& allowed) const { return find_usable_cpus(root_, allowed); }

 private:
  static std::string cpu_file(int cpu, const std::string& name) {
    return "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + name;
  }
  std::string root_;
};

const std::vector<int> kEight = {0, 1, 2, 3, 4, 5, 6, 7};

EK_TEST(little_cores_are_left_out) {
  FakeMachine machine;
  for (int cpu : kEight) machine.capacity(cpu, cpu < 4 ? 400 : cpu < 6 ? 900 : 1024);
  EK_CHECK((machine.find(kEight).ids == std::vector<int>{4, 5, 6, 7}));
  EK_CHECK(machine.find(kEight).cores == 4);
  EK_CHECK((machine.find({0, 1}).ids == std::vector<int>{0, 1}));  // pinned to little ones: better than nothing
}

EK_TEST(siblings_share_a_core) {
  FakeMachine machine;
  for (int cpu : kEight) machine.siblings(cpu, std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1));
  EK_CHECK(machine.find(kEight).cores == 4);
  EK_CHECK(machine.find(kEight).ids.size() == 8);
  EK_CHECK(machine.find({1, 3}).cores == 2);
}

EK_TEST(quota_of_control_groups_version_2) {
  FakeMachine machine;
  machine.write("/proc/self/cgroup", "0::/outer/inner");
  machine.write("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000");
  EK_CHECK(machine.find(kEight).cores == 8);
  machine.write("/sys/fs/cgroup/outer/cpu.max", "350000 100000");
  EK_CHECK(machine.find(kEight).cores == 3);
  machine.write("/sys/fs/cgroup/outer/inner/cpu.max", "50000 100000");
  EK_CHECK(machine.find(kEight).cores == 1);
}

EK_TEST(quota_of_control_groups_version_1) {
  FakeMachine machine;
  machine.write("/proc/self/cgroup", "5:memory:/x\n4:cpuacct,cpu:/box");
  machine.write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000");
  machine.write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  EK_CHECK(machine.find(kEight).cores == 2);
  machine.write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1");
  EK_CHECK(machine.find(kEight).cores == 8);
}

EK_TEST(a_machine_that_tells_nothing) {
  const FakeMachine machine;
  EK_CHECK(machine.find(kEight).cores == 8);
  EK_CHECK(machine.find({3}).cores == 1);
}

}  // namespace
}  // namespace edgekit
