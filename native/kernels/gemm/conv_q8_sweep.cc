// Runs the panels of a conv_q8 over blocks of its rows.
#include <algorithm>

#include "kernels/carver.h"
#include "kernels/gemm/conv_q8_plan.h"
#include "kernels/gemm/conv_q8_scratch.h"

namespace edgekit {
namespace {

int64_t leading_quads(const int64_t* offsets, int64_t count, int64_t step) {
  int64_t quad = 0;
  for (; 4 * quad + 4 <= count; ++quad) {
    const int64_t* at = offsets + 4 * quad;
    if (at[1] != at[0] + step || at[2] != at[1] + step || at[3] != at[2] + step) break;
  }
  return quad;
}

// Runs panels over blocks of rows.
class Sweep {
 public:
  explicit Sweep(const ConvQ8Task& task)
      : task_(task),
        plan_(task.plan),
        carver_(task.scratch),
        scratch_(carve(task.plan, carver_)),
        orders_(plan_.weight_rows),
        images_{plan_.source, task.args.out(0), task.requantize.add ? task.args.inputs[5] : nullptr, {}, {}, 0} {
    const ConvQ8Source& s = plan_.source;
    const int64_t count = s.depth_groups();
    for (int64_t group = 0; group < count; ++group) scratch_.packed_groups[group] = group * plan_.kg;
    if (is_padded()) {
      padded_offsets(s, plan_.padding, scratch_.direct_groups);
    } else if (s.direct()) {
      images_.reach = s.direct_offsets(scratch_.direct_groups);
      images_.inner_rows = s.inner_rows();
      images_.inner_columns = s.inner_columns();
      direct_quads_ = leading_quads(scratch_.direct_groups, count, plan_.kg);
    }
    std::fill(one_segment_ + 1, one_segment_ + kRowForms + 1, static_cast<int32_t>(count));
    tile_.segments = task.bands.segments == nullptr ? one_segment_ : task.bands.segments;
    tile_.parts = task.bands.segments == nullptr ? 1 : task.bands.parts;
    tile_.depth_groups = count;
    tile_.requantize = &task.requantize;
    tile_.nr = plan_.nr;
    tile_.kg = plan_.kg;
    tile_.is_signed = task.args.in(0).dtype == Dtype::kS8;
  }

  // Panels, counted over all groups.
  void run(Span rows, Span panels) {
    if (is_padded()) return run_padded(rows, panels);
    for (int64_t panel = panels.begin; panel < panels.end;) {
      const int64_t group = panel / plan_.panels;
      const int64_t end = std::min(panels.end, (group + 1) * plan_.panels);
      run_group(rows, {panel, end}, group);
      panel = end;
    }
  }

 private:
  bool is_padded() const { return task_.bands.count == 0 && plan_.padding.lines > 0; }

  void run_group(Span rows, Span panels, int64_t group) {
    if (task_.bands.count > 0) return run_banded(rows, panels, group);
    while (rows.begin < rows.end) {
      rows.begin += provide_rows(images_, rows, group, scratch_.rows);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        provide_panel(panel, group);
        tile_.quads = direct_quads_;
        sweep(scratch_.direct_groups, scratch_.direct_offsets, {0, scratch_.rows.direct_count});
        tile_.quads = plan_.source.depth_groups() / 4;
        sweep(scratch_.packed_groups, scratch_.packed_offsets,
              {plan_.block_rows - scratch_.rows.packed_count, plan_.block_rows});
      }
    }
  }

  // All groups read one copy: the same rows, each at its own channels.
  void run_padded(Span rows, Span panels) {
    const ConvQ8Source& s = plan_.source;
    tile_.quads = 0;
    while (rows.begin < rows.end) {
      const PaddedLines lines = padded_lines(s, plan_.padding, rows);
      copy_padded(s, plan_.padding, lines, scratch_.copy);
      const Span block{rows.begin, rows.begin + lines.rows};
      provide_padded_rows(images_, plan_.padding, block, scratch_.copy, scratch_.rows.at);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t group = panel / plan_.panels;
        for (int64_t i = 0; i < s.depth_groups(); ++i) {
          scratch_.packed_groups[i] = scratch_.direct_groups[i] + group * s.channels;
        }
        provide_panel(panel, group);
        sweep(scratch_.packed_groups, scratch_.packed_offsets, {0, lines.rows});
      }
      rows.begin = block.end;
    }
  }

  void run_banded(Span rows, Span panels, int64_t group) {
    Span spans[kMostBands];
    tile_.quads = 0;
    for (; rows.begin < rows.end; rows.begin += plan_.block_rows) {
      const Span block{rows.begin, std::min(rows.end, rows.begin + plan_.block_rows)};
      provide_banded_rows(images_, task_.bands, block, group, scratch_.rows.at, spans);
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        provide_panel(panel, group);
        if (task_.bands.offsets != nullptr) provide_offsets(task_.bands.offsets, scratch_.direct_offsets);
        for (int i = 0; i < task_.bands.count; ++i) {
          const ConvQ8Band& band = task_.bands.band[i];
          tile_.taken = band.taken;
          if (band.bias != nullptr) tile_.bias = band.bias + panel * plan_.nr;
          if (band.taken == nullptr) {
            tile_.offsets = band.offsets;
            tile_.depth_groups = band.groups;
            tile_.b_offsets = band.b_offsets;
          }
          run_rows(spans[i]);
        }
      }
    }
  }

  // Kernels read nr values of bias and scale: a panel that is not full gets a padded copy.
  void provide_panel(int64_t panel, int64_t group) {
    const int64_t column = panel % plan_.panels * plan_.nr;
    tile_.channel = group * plan_.group_columns + column;
    tile_.columns = static_cast<int>(std::min<int64_t>(plan_.nr, plan_.group_columns - column));
    tile_.bias = task_.args.in(2).as<const int32_t>() + tile_.channel;
    tile_.scale = task_.args.in(3).as<const float>() + tile_.channel;
    provide_weights(panel);
    if (tile_.columns == tile_.nr) return;
    std::fill_n(std::copy_n(tile_.bias, tile_.columns, scratch_.bias), tile_.nr - tile_.columns, 0);
    std::fill_n(std::copy_n(tile_.scale, tile_.columns, scratch_.scale), tile_.nr - tile_.columns, 0.0f);
    tile_.bias = scratch_.bias;
    tile_.scale = scratch_.scale;
  }

  void provide_weights(int64_t panel) {
    const WeightRows& rows = plan_.weight_rows;
    int64_t first = panel * plan_.source.depth_groups();
    if (rows.starts != nullptr) {
      tile_.segments = rows.starts + rows.segments * panel;
      tile_.parts = rows.segments / rows.forms();
      tile_.orders = orders_.of(panel);
      tile_.depth_groups = rows.count(panel);
      first = tile_.segments[0];
    }
    tile_.b = task_.args.in(1).as<const int8_t>() + first * plan_.nr * plan_.kg;
  }

  void sweep(const int64_t* groups, int64_t* offsets, Span rows) {
    if (rows.begin == rows.end) return;
    provide_offsets(groups, offsets);
    run_rows(rows);
  }

  // Where the panel's depth groups lie in rows; `offsets` has room for those of a list.
  void provide_offsets(const int64_t* groups, int64_t* offsets) {
    tile_.offsets = groups;
    if (plan_.weight_rows.starts == nullptr) return;
    const int32_t* group = plan_.weight_rows.groups + tile_.segments[0];
    for (int64_t i = 0; i < tile_.depth_groups; ++i) offsets[i] = groups[group[i]];
    tile_.offsets = offsets;
    tile_.quads = 0;
  }

  void run_rows(Span rows) {
    if (rows.begin == rows.end) return;
    const RowPointers& at = scratch_.rows.at;
    tile_.a = at.a + rows.begin;
    tile_.y = at.y + rows.begin;
    tile_.residual = at.residual + rows.begin;
    tile_.rows = rows.end - rows.begin;
    plan_.kernel->run(tile_);
  }

  const ConvQ8Task& task_;
  const ConvQ8Plan& plan_;
  Carver carver_;
  BlockScratch scratch_;
  PanelOrders orders_;
  ConvQ8Images images_;
  int64_t direct_quads_ = 0;
  int32_t one_segment_[kRowForms + 1] = {};  // all depth groups in form 0
  GemmQ8Rows tile_{};
};

}  // namespace

void run_conv_q8_task(const ConvQ8Task& task, Span rows, Span panels) { Sweep(task).run(rows, panels); }

}  // namespace edgekit
