// Packs conv_q8's weights as the schema says, for tests and benchmarks.
#ifndef EDGEKIT_TESTS_Q8_PACK_H_
#define EDGEKIT_TESTS_Q8_PACK_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/safe_pairs.h"

namespace edgekit::test {

struct PackShape {
  int groups, group_columns, kernel_h, kernel_w, channels;  // columns and channels of a group
  int nr, kg;
  bool saturating_pairs;
  bool is_signed = false;  // s8 activations
  int part = 128;          // depth groups of a part of a list of rows, at most
  bool taps = false;       // no part is of several taps

  int run_bytes() const { return kernel_w * channels; }
  int panels() const { return (group_columns + nr - 1) / nr; }  // of one group
  int run_groups() const { return (run_bytes() + kg - 1) / kg; }
  int depth_groups() const { return kernel_h * run_groups(); }
  bool ends_part(int group) const {
    const int end = group + 1, place = taps && channels % kg == 0 ? end % (channels / kg) : end;
    return end == depth_groups() || place == 0 || place % part == 0;
  }
  // Whether rows may pick of the bytes of this depth group and three more: all of one tap, or of one run of bytes.
  bool starts_window(int group) const {
    const int piece = channels % kg == 0 ? channels / kg : run_groups();
    const int place = group % piece;
    return place % 4 == 0 && place + 4 <= piece;
  }
};

struct PackedWeights {
  std::vector<int8_t> w;
  std::vector<int32_t> row_start, row_group, row_order;  // empty: no list of rows
  std::vector<int32_t> complement;                       // [output channels] what complemented bytes add to the sums
};

inline constexpr int kForms = 6;  // beside the last one, whose rows have orders
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
  std::vector<int32_t> groups, orders;

  template <typename T>
  void add(const std::vector<T>& lanes, int group) {
    for (const T lane : lanes) w.push_back(static_cast<int8_t>(lane));
    groups.push_back(group);
  }
};

// The rows of a part of a panel, by forms.
using PartRows = std::array<FormedRows, kForms + 1>;

// The first form of a depth group that does not saturate.
inline std::optional<int> safe_form(const std::vector<int8_t>& lanes) {
  for (const int form : kFormPreference) {
    if (is_safe(in_form(lanes, form))) return form;
  }
  return std::nullopt;
}

// Adds a window of four depth groups as four rows that pick of all, if one of them has no form of its own.
inline bool add_picked(const Lanes* window, int group, PartRows& forms) {
  if (std::all_of(window, window + 4, [](const Lanes& lanes) { return safe_form(lanes).has_value(); })) return false;
  const SafePairs pairs(window);
  for (size_t first = 0; first < pairs.bytes().size(); first += 4) {
    const int* byte = &pairs.bytes()[first];
    Lanes row(window[0].size());
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = window[byte[i % 4] / 4][i / 4 * 4 + static_cast<size_t>(byte[i % 4] % 4)];
    }
    forms[kForms].add(row, group);
    forms[kForms].orders.push_back(byte[0] | byte[1] << 8 | byte[2] << 16 | byte[3] << 24);
  }
  return !pairs.bytes().empty();
}

// Adds a depth group in the first form that does not saturate, or as two rows. Returns the form.
inline int add_bounded(const std::vector<int8_t>& lanes, int group, PartRows& forms) {
  if (const auto form = safe_form(lanes)) {
    forms[static_cast<size_t>(*form)].add(in_form(lanes, *form), group);
    return *form;
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
    if (column >= s.group_columns || byte >= s.run_bytes()) continue;
    lanes[lane] = weight(panel / s.panels() * s.group_columns + column, group / s.run_groups(), byte);
  }
  return lanes;
}

// What the complemented bytes of a depth group add to a channel's sum: -w * ~x = w * x - w * ~0.
inline int complement_of(const int8_t* weights, int form, bool is_signed) {
  int sum = 0;
  for (int k = 0; k < 4; ++k) sum += kFormComplements[form][k] ? (is_signed ? 1 : -255) * weights[k] : 0;
  return sum;
}

// Moves the rows of a part to the end of the list.
inline void append_part(PartRows& forms, PackedWeights& packed) {
  for (FormedRows& rows : forms) {
    packed.w.insert(packed.w.end(), rows.w.begin(), rows.w.end());
    packed.row_group.insert(packed.row_group.end(), rows.groups.begin(), rows.groups.end());
    packed.row_order.insert(packed.row_order.end(), rows.orders.begin(), rows.orders.end());
    packed.row_start.push_back(static_cast<int32_t>(packed.row_group.size()));
    rows = {};
  }
}

// The lanes of all depth groups of a panel.
template <typename Weight>
std::vector<std::vector<int8_t>> panel_lanes(const PackShape& s, int panel, Weight&& weight) {
  std::vector<std::vector<int8_t>> lanes;
  for (int group = 0; group < s.depth_groups(); ++group) lanes.push_back(depth_group(s, panel, group, weight));
  return lanes;
}

// A panel as a list of rows.
inline void append_rows(const PackShape& s, int panel, const std::vector<std::vector<int8_t>>& lanes,
                        PackedWeights& packed) {
  PartRows forms;
  int done = 0;  // depth groups that have their rows
  for (int group = 0; group < s.depth_groups(); ++group) {
    const auto at = static_cast<size_t>(group);
    if (group == done && s.starts_window(group) && add_picked(&lanes[at], group, forms)) done = group + 4;
    if (group >= done) {
      const int form = add_bounded(lanes[at], group, forms);
      const int first = panel % s.panels() * s.nr;
      for (int column = 0; column < s.nr && first + column < s.group_columns; ++column) {
        packed.complement[static_cast<size_t>(panel / s.panels() * s.group_columns + first + column)] +=
            complement_of(&lanes[at][static_cast<size_t>(column) * 4], form, s.is_signed);
      }
      done = group + 1;
    }
    if (s.ends_part(group)) append_part(forms, packed);
  }
}

// Six forms are all there is where no row picks.
inline void drop_last_form(PackedWeights& packed) {
  std::vector<int32_t> starts;
  for (size_t i = 0; i < packed.row_start.size(); ++i) {
    if (i % (kForms + 1) != kForms) starts.push_back(packed.row_start[i]);
  }
  packed.row_start = starts;
}

template <typename Weight>
PackedWeights pack_conv_q8(const PackShape& s, Weight&& weight) {
  PackedWeights packed;
  packed.complement.assign(static_cast<size_t>(s.groups) * s.group_columns, 0);
  if (s.saturating_pairs) packed.row_start.push_back(0);
  for (int panel = 0; panel < s.groups * s.panels(); ++panel) {
    const std::vector<std::vector<int8_t>> lanes = panel_lanes(s, panel, weight);
    if (s.saturating_pairs) {
      append_rows(s, panel, lanes, packed);
    } else {
      for (const std::vector<int8_t>& group : lanes) packed.w.insert(packed.w.end(), group.begin(), group.end());
    }
  }
  if (packed.row_order.empty()) drop_last_form(packed);
  return packed;
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_Q8_PACK_H_
