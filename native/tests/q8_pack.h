// Packs conv_q8's weights as the schema says, for tests and benchmarks.
#ifndef EDGEKIT_TESTS_Q8_PACK_H_
#define EDGEKIT_TESTS_Q8_PACK_H_

#include <cstdint>
#include <vector>

namespace edgekit::test {

struct PackShape {
  int groups, group_columns, kernel_h, run_bytes;  // run_bytes: kernel_w * channels of a group
  int nr, kg;
  bool saturating_pairs;

  int panels() const { return (group_columns + nr - 1) / nr; }  // of one group
  int run_groups() const { return (run_bytes + kg - 1) / kg; }
  int depth_groups() const { return kernel_h * run_groups(); }
};

struct PackedWeights {
  std::vector<int8_t> w;
  std::vector<int32_t> excess_start, excess_group;  // empty: no excess
};

// What of the weights of a pair does not fit the bound on one: taken from the second, 0 if all fits.
inline int pair_excess(int first, int second) {
  if (first > 0 && second > 0 && first + second > 128) return first + second - 128;
  if (first < 0 && second < 0 && first + second < -128) return first + second + 128;
  return 0;
}

// Moves the excess of a depth group's pairs into `excess`; says whether there is any.
inline bool split_pairs(std::vector<int8_t>& weights, std::vector<int8_t>& excess) {
  excess.assign(weights.size(), 0);
  bool any = false;
  for (size_t i = 0; i + 1 < weights.size(); i += 2) {
    const int beyond = pair_excess(weights[i], weights[i + 1]);
    excess[i + 1] = static_cast<int8_t>(beyond);
    weights[i + 1] = static_cast<int8_t>(weights[i + 1] - beyond);
    any = any || beyond != 0;
  }
  return any;
}

// weight(output channel, ky, byte of the run) -> int8.
template <typename Weight>
PackedWeights pack_conv_q8(const PackShape& s, Weight&& weight) {
  PackedWeights packed;
  packed.excess_start.push_back(0);
  std::vector<int8_t> lanes, excess, tail;
  for (int panel = 0; panel < s.groups * s.panels(); ++panel) {
    const int first = panel % s.panels() * s.nr;
    tail.clear();
    for (int group = 0; group < s.depth_groups(); ++group) {
      lanes.assign(static_cast<size_t>(s.nr) * s.kg, 0);
      for (int lane = 0; lane < s.nr * s.kg; ++lane) {
        const int column = first + lane / s.kg;
        const int byte = group % s.run_groups() * s.kg + lane % s.kg;
        if (column >= s.group_columns || byte >= s.run_bytes) continue;
        lanes[lane] = weight(panel / s.panels() * s.group_columns + column, group / s.run_groups(), byte);
      }
      if (s.saturating_pairs && split_pairs(lanes, excess)) {
        packed.excess_group.push_back(group);
        tail.insert(tail.end(), excess.begin(), excess.end());
      }
      packed.w.insert(packed.w.end(), lanes.begin(), lanes.end());
    }
    packed.w.insert(packed.w.end(), tail.begin(), tail.end());
    packed.excess_start.push_back(static_cast<int32_t>(packed.excess_group.size()));
  }
  if (packed.excess_group.empty()) packed.excess_start.clear();
  return packed;
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_Q8_PACK_H_
