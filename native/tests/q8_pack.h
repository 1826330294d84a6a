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
  int part = 128;  // depth groups of a part of a list of rows

  int panels() const { return (group_columns + nr - 1) / nr; }  // of one group
  int run_groups() const { return (run_bytes + kg - 1) / kg; }
  int depth_groups() const { return kernel_h * run_groups(); }
};

struct PackedWeights {
  std::vector<int8_t> w;
  std::vector<int32_t> row_start, row_group;  // empty: no list of rows
  std::vector<int32_t> complement;            // [output channels] what complemented bytes add to the sums
};

// What of the weights of a pair does not fit the bound on one: taken from the second, 0 if all fits.
inline int pair_excess(int first, int second) {
  if (first > 0 && second > 0 && first + second > 128) return first + second - 128;
  if (first < 0 && second < 0 && first + second < -128) return first + second + 128;
  return 0;
}

inline constexpr int kForms = 6;
inline constexpr int kFormOrders[kForms][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 3, 1, 2},
                                               {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}};
inline constexpr bool kFormComplements[kForms][4] = {
    {}, {}, {}, {false, true}, {false, false, false, true}, {false, true, false, true}};

inline constexpr int kFormPreference[kForms] = {0, 3, 4, 5, 1, 2};

// The weights of a depth group for that form of its bytes; not all fit when it complements a -128.
inline std::vector<int> in_form(const std::vector<int8_t>& lanes, int form) {
  std::vector<int> formed(lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) {
    const int weight = lanes[i / 4 * 4 + static_cast<size_t>(kFormOrders[form][i % 4])];
    formed[i] = kFormComplements[form][i % 4] ? -weight : weight;
  }
  return formed;
}

inline bool is_safe(const std::vector<int>& row) {
  for (size_t i = 0; i < row.size(); i += 2) {
    if (row[i] > 127 || row[i + 1] > 127 || pair_excess(row[i], row[i + 1]) != 0) return false;
  }
  return true;
}

// A panel's rows of one form.
struct FormedRows {
  std::vector<int8_t> w;
  std::vector<int32_t> groups;

  template <typename T>
  void add(const std::vector<T>& lanes, int group) {
    for (const T lane : lanes) w.push_back(static_cast<int8_t>(lane));
    groups.push_back(group);
  }
};

// Adds a depth group in the first form that does not saturate, or as two rows. Returns the form.
inline int add_bounded(const std::vector<int8_t>& lanes, int group, FormedRows (&forms)[kForms]) {
  for (const int form : kFormPreference) {
    const std::vector<int> row = in_form(lanes, form);
    if (!is_safe(row)) continue;
    forms[form].add(row, group);
    return form;
  }
  std::vector<int8_t> first = lanes, second(lanes.size(), 0);
  for (size_t i = 0; i < lanes.size(); i += 2) {
    second[i + 1] = static_cast<int8_t>(pair_excess(lanes[i], lanes[i + 1]));
    first[i + 1] = static_cast<int8_t>(lanes[i + 1] - second[i + 1]);
  }
  forms[0].add(first, group);
  forms[0].add(second, group);
  return 0;
}

// weight(output channel, ky, byte of the run) -> int8.
template <typename Weight>
std::vector<int8_t> depth_group(const PackShape& s, int panel, int group, Weight&& weight) {
  std::vector<int8_t> lanes(static_cast<size_t>(s.nr) * s.kg, 0);
  for (int lane = 0; lane < s.nr * s.kg; ++lane) {
    const int column = panel % s.panels() * s.nr + lane / s.kg;
    const int byte = group % s.run_groups() * s.kg + lane % s.kg;
    if (column >= s.group_columns || byte >= s.run_bytes) continue;
    lanes[lane] = weight(panel / s.panels() * s.group_columns + column, group / s.run_groups(), byte);
  }
  return lanes;
}

// What the complemented bytes of a depth group of u8 add to a channel's sum.
inline int complement_of(const int8_t* weights, int form) {
  int sum = 0;
  for (int k = 0; k < 4; ++k) sum += kFormComplements[form][k] ? -255 * weights[k] : 0;
  return sum;
}

// Moves the rows of a part to the end of the list.
inline void append_part(FormedRows (&forms)[kForms], PackedWeights& packed) {
  for (FormedRows& rows : forms) {
    packed.w.insert(packed.w.end(), rows.w.begin(), rows.w.end());
    packed.row_group.insert(packed.row_group.end(), rows.groups.begin(), rows.groups.end());
    packed.row_start.push_back(static_cast<int32_t>(packed.row_group.size()));
    rows = {};
  }
}

template <typename Weight>
PackedWeights pack_conv_q8(const PackShape& s, Weight&& weight) {
  PackedWeights packed;
  packed.complement.assign(static_cast<size_t>(s.groups) * s.group_columns, 0);
  if (s.saturating_pairs) packed.row_start.push_back(0);
  for (int panel = 0; panel < s.groups * s.panels(); ++panel) {
    FormedRows forms[kForms];
    for (int group = 0; group < s.depth_groups(); ++group) {
      const std::vector<int8_t> lanes = depth_group(s, panel, group, weight);
      if (!s.saturating_pairs) {
        packed.w.insert(packed.w.end(), lanes.begin(), lanes.end());
        continue;
      }
      const int form = add_bounded(lanes, group, forms);
      const int first = panel % s.panels() * s.nr;
      for (int column = 0; column < s.nr && first + column < s.group_columns; ++column) {
        packed.complement[panel / s.panels() * s.group_columns + first + column] +=
            complement_of(&lanes[static_cast<size_t>(column) * s.kg], form);
      }
      if ((group + 1) % s.part == 0 || group + 1 == s.depth_groups()) append_part(forms, packed);
    }
  }
  return packed;
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_Q8_PACK_H_
