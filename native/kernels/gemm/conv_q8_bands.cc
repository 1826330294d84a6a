#include "kernels/gemm/conv_q8_bands.h"

#include <algorithm>

#include "kernels/gemm/conv_q8_way.h"
#include "kernels/window.h"

namespace edgekit {
namespace {

struct AxisBands {
  int count = 0;  // 0: more than there is room for
  Span outputs[kMostAxisBands];
  TapRange taps[kMostAxisBands];
};

AxisBands axis_bands(const WindowAxis& axis, int64_t outputs, int64_t extent) {
  AxisBands bands;
  for (int64_t o = 0; o < outputs; ++o) {
    const TapRange taps = taps_inside(axis, o, extent);
    if (bands.count > 0) {
      const TapRange& last = bands.taps[bands.count - 1];
      if (taps.begin == last.begin && taps.end == last.end) {
        bands.outputs[bands.count - 1].end = o + 1;
        continue;
      }
    }
    if (bands.count == kMostAxisBands) return {};
    bands.outputs[bands.count] = {o, o + 1};
    bands.taps[bands.count++] = taps;
  }
  return bands;
}

struct Grid {
  ConvQ8Source source;
  AxisBands lines, columns;
  int64_t tap_groups;  // depth groups of a tap

  int count() const { return lines.count * columns.count; }
};

// Of no bands where kernels can't skip or there is nothing to skip.
Grid grid_of(const OpArgs& args, Isa isa) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  const bool listed = args.input_count > 7 && args.inputs[6] != nullptr;
  Grid grid{conv_q8_source(args.in(0), args.out(0), a), {}, {}, 0};
  const ConvQ8Source& s = grid.source;
  if (!conv_q8_kernel(args, isa).picks_depth) return grid;
  if (a.x_zero != 0 || listed || s.channels % s.kg != 0) return grid;
  const AxisBands lines = axis_bands(vertical_axis(s.window), s.out_h, s.h);
  const AxisBands columns = axis_bands(horizontal_axis(s.window), s.out_w, s.w);
  const bool is_whole = lines.count == 1 && columns.count == 1 && lines.taps[0].count() == s.window.kernel_h &&
                        columns.taps[0].count() == s.window.kernel_w;
  if (is_whole) return grid;
  grid.lines = lines;
  grid.columns = columns;
  grid.tap_groups = s.channels / s.kg;
  return grid;
}

int64_t groups_of_all(const Grid& grid) {
  int64_t taps = 0;
  for (int i = 0; i < grid.lines.count; ++i) {
    for (int j = 0; j < grid.columns.count; ++j) taps += grid.lines.taps[i].count() * grid.columns.taps[j].count();
  }
  return taps * grid.tap_groups;
}

// Lists one band's depth groups; returns how many.
int64_t list_groups(const Grid& grid, int64_t group_bytes, TapRange lines, TapRange columns, int64_t* offsets,
                    int64_t* b_offsets) {
  const ConvQ8Source& s = grid.source;
  int64_t count = 0;
  for (int64_t ky = lines.begin; ky < lines.end; ++ky) {
    for (int64_t kx = columns.begin; kx < columns.end; ++kx) {
      const int64_t tap = ky * s.window.dilation_h * s.stride_h + kx * s.window.dilation_w * s.stride_w;
      for (int64_t group = 0; group < grid.tap_groups; ++group, ++count) {
        offsets[count] = tap + group * s.kg;
        b_offsets[count] = ((ky * s.window.kernel_w + kx) * grid.tap_groups + group) * group_bytes;
      }
    }
  }
  return count;
}

Span overlap(Span a, Span b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

}  // namespace

size_t conv_q8_band_bytes(const OpArgs& args, Isa isa) {
  return 2 * sizeof(int64_t) * static_cast<size_t>(groups_of_all(grid_of(args, isa)));
}

ConvQ8Bands make_conv_q8_bands(const OpArgs& args, Isa isa, int64_t* lists) {
  const Grid grid = grid_of(args, isa);
  const auto& a = args.attrs<ConvQ8Attrs>();
  ConvQ8Bands bands{grid.count(), {}};
  for (int i = 0; i < bands.count; ++i) {
    const int line = i / grid.columns.count, column = i % grid.columns.count;
    const TapRange lines = grid.lines.taps[line], columns = grid.columns.taps[column];
    const int64_t most = lines.count() * columns.count() * grid.tap_groups;
    list_groups(grid, int64_t{a.nr} * a.kg, lines, columns, lists, lists + most);
    bands.band[i] = {grid.lines.outputs[line], grid.columns.outputs[column], lists, lists + most, most};
    lists += 2 * most;
  }
  return bands;
}

void provide_banded_rows(const ConvQ8Images& images, const ConvQ8Bands& bands, Span rows, int64_t group,
                         const RowPointers& to, Span (&spans)[kMostBands]) {
  const ConvQ8Source& s = images.source;
  int64_t count = 0;
  for (int i = 0; i < bands.count; ++i) {
    const ConvQ8Band& band = bands.band[i];
    spans[i].begin = count;
    OutputCursor at(s, rows.begin);
    for (int64_t left = rows.end - rows.begin; left > 0;) {
      const int64_t end = std::min<int64_t>(s.out_w, at.ox + left);
      const Span columns = overlap(band.columns, {at.ox, end});
      left -= end - at.ox;
      if (at.oy >= band.lines.begin && at.oy < band.lines.end && columns.begin < columns.end) {
        OutputCursor first = at;
        first.ox = static_cast<int32_t>(columns.begin);
        LineWalk(images, group, first).put_direct(to, count, columns.end - columns.begin);
        count += columns.end - columns.begin;
      }
      at.next_line(s);
    }
    spans[i].end = count;
  }
}

}  // namespace edgekit
