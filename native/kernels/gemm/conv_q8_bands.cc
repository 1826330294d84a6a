#include "kernels/gemm/conv_q8_bands.h"

#include <algorithm>

#include "kernels/gemm/conv_q8_way.h"
#include "kernels/gemm/weight_rows.h"
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
  DepthSkips skips;
  AxisBands lines, columns;
  int64_t tap_groups;  // depth groups of a tap
  WeightRows rows;
  int64_t panels;  // of all groups

  int count() const { return lines.count * columns.count; }
  int64_t taps() const { return int64_t{source.window.kernel_h} * source.window.kernel_w; }
  int64_t parts() const { return rows.starts == nullptr ? taps() : rows.parts(); }
  int64_t tap_of(int64_t part) const { return rows.starts == nullptr ? part : tap_of_part(rows, source, panels, part); }
};

// Lists whose parts are of one tap each have as many parts for each tap.
bool may_skip(const Grid& grid) {
  if (grid.rows.starts == nullptr) return grid.skips != DepthSkips::kNothing;
  return grid.skips == DepthSkips::kParts && grid.parts() % grid.taps() == 0;
}

// Whether they really are.
bool are_parts_taps(const Grid& grid) {
  for (int64_t part = 0; part < grid.parts(); ++part) {
    if (grid.tap_of(part) < 0) return false;
  }
  return true;
}

// Of no bands where there is nothing to skip, or kernels can't by what is known without reading lists.
Grid shape_of(const OpArgs& args, Isa isa) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  Grid grid{};
  grid.source = conv_q8_source(args.in(0), args.out(0), a);
  grid.skips = conv_q8_kernel(args, isa).skips;
  const ConvQ8Source& s = grid.source;
  if (a.x_zero != 0 || s.channels % s.kg != 0) return grid;
  grid.tap_groups = s.channels / s.kg;
  grid.panels = a.groups * ((int64_t{args.out(0).dims[3]} / a.groups + a.nr - 1) / a.nr);
  grid.rows = weight_rows_of(args, grid.panels);
  const AxisBands lines = axis_bands(vertical_axis(s.window), s.out_h, s.h);
  const AxisBands columns = axis_bands(horizontal_axis(s.window), s.out_w, s.w);
  const bool is_whole = lines.count == 1 && columns.count == 1 && lines.taps[0].count() == s.window.kernel_h &&
                        columns.taps[0].count() == s.window.kernel_w;
  if (is_whole || !may_skip(grid)) return grid;
  grid.lines = lines;
  grid.columns = columns;
  return grid;
}

Grid grid_of(const OpArgs& args, Isa isa) {
  Grid grid = shape_of(args, isa);
  if (grid.rows.starts != nullptr && grid.count() > 0 && !are_parts_taps(grid)) grid.lines = grid.columns = {};
  return grid;
}

int64_t groups_of_all(const Grid& grid) {
  int64_t taps = 0;
  for (int i = 0; i < grid.lines.count; ++i) {
    for (int j = 0; j < grid.columns.count; ++j) taps += grid.lines.taps[i].count() * grid.columns.taps[j].count();
  }
  return taps * grid.tap_groups;
}

// Words of a band's bias. It differs where bytes are complemented: zeros outside the image then add something.
int64_t biases_of(const Grid& grid, const OpArgs& args) {
  return grid.rows.starts == nullptr ? 0 : grid.panels * args.attrs<ConvQ8Attrs>().nr;
}

int64_t segments_of(const Grid& grid) { return grid.rows.starts == nullptr ? kRowForms * grid.parts() + 1 : 0; }

TapRange lines_of(const Grid& grid, int band) { return grid.lines.taps[band / grid.columns.count]; }
TapRange columns_of(const Grid& grid, int band) { return grid.columns.taps[band % grid.columns.count]; }

bool holds(TapRange range, int64_t tap) { return tap >= range.begin && tap < range.end; }

bool takes(const Grid& grid, int band, int64_t tap) {
  const int64_t kernel_w = grid.source.window.kernel_w;
  return holds(lines_of(grid, band), tap / kernel_w) && holds(columns_of(grid, band), tap % kernel_w);
}

// What rows of complemented bytes add to the sums of their panel's columns for zeros: bias made up for it.
void add_zeros(const int8_t* w, int64_t rows, RowForm form, int32_t value, int nr, uint32_t* sums) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int column = 0; column < nr; ++column, w += 4) {
      for (int k = 0; k < 4; ++k) {
        if ((form.complement >> (8 * k) & 0xff) != 0) sums[column] += static_cast<uint32_t>(value * w[k]);
      }
    }
  }
}

// The bias of all bands, [bands][panels][nr]: what parts that are left out do not add goes back to it.
void fill_biases(const OpArgs& args, const Grid& grid, const ConvQ8Bands& bands, int32_t* bias) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  const int64_t group_columns = args.out(0).dims[3] / a.groups, panels = grid.panels / a.groups;
  const int64_t count = biases_of(grid, args);
  for (int64_t panel = 0; panel < grid.panels; ++panel) {
    const int64_t column = panel % panels * a.nr, columns = std::min<int64_t>(a.nr, group_columns - column);
    const int32_t* from = args.in(2).as<const int32_t>() + panel / panels * group_columns + column;
    for (int i = 0; i < bands.count; ++i) {
      std::fill_n(std::copy_n(from, columns, bias + i * count + panel * a.nr), a.nr - columns, 0);
    }
    for (int64_t segment = 0; segment < grid.rows.segments; ++segment) {
      const int64_t form = segment % grid.rows.forms(), part = segment / grid.rows.forms();
      if (form < kFirstComplement || form == kRowForms) continue;
      const int32_t* start = grid.rows.starts + panel * grid.rows.segments + segment;
      uint32_t sums[kGemmQ8MostColumns] = {};
      const auto* w = args.in(1).as<const int8_t>() + int64_t{start[0]} * a.nr * a.kg;
      add_zeros(w, start[1] - start[0], kRowForm[form], args.in(0).dtype == Dtype::kS8 ? -1 : 255, a.nr, sums);
      for (int i = 0; i < bands.count; ++i) {
        if (bands.band[i].taken[part] != 0) continue;
        auto* to = reinterpret_cast<uint32_t*>(bias + i * count + panel * a.nr);
        for (int64_t j = 0; j < a.nr; ++j) to[j] += sums[j];
      }
    }
  }
}

// Where a tap's depth groups lie, from the window's start. Returns what follows them in the list.
int64_t* put_tap(const Grid& grid, int64_t tap, int64_t* offset) {
  const ConvQ8Source& s = grid.source;
  const int64_t ky = tap / s.window.kernel_w, kx = tap % s.window.kernel_w;
  const int64_t at = ky * s.window.dilation_h * s.stride_h + kx * s.window.dilation_w * s.stride_w;
  for (int64_t group = 0; group < grid.tap_groups; ++group) *offset++ = at + group * s.kg;
  return offset;
}

// For kernels that skip parts.
void list_parts(const OpArgs& args, const Grid& grid, int64_t* lists, ConvQ8Bands& bands) {
  bands.offsets = lists;
  for (int64_t tap = 0; tap < grid.taps(); ++tap) lists = put_tap(grid, tap, lists);
  auto* segments = reinterpret_cast<int32_t*>(lists);
  const int64_t count = segments_of(grid), biases = biases_of(grid, args);
  int32_t* bias = segments + count;
  auto* taken = reinterpret_cast<uint8_t*>(bias + bands.count * biases);
  for (int64_t i = 0; i < count; ++i) {
    segments[i] = static_cast<int32_t>((i + kRowForms - 1) / kRowForms * grid.tap_groups);  // all in form 0
  }
  bands.parts = grid.parts();
  if (count > 0) bands.segments = segments;
  for (int i = 0; i < bands.count; ++i) {
    bands.band[i].taken = taken + i * bands.parts;
    if (biases > 0) bands.band[i].bias = bias + i * biases;
  }
  for (int64_t part = 0; part < bands.parts; ++part) {
    const int64_t tap = grid.tap_of(part);
    for (int i = 0; i < bands.count; ++i) taken[i * bands.parts + part] = takes(grid, i, tap);
  }
  if (biases > 0) fill_biases(args, grid, bands, bias);
}

// For kernels that skip depth groups.
void list_groups(const OpArgs& args, const Grid& grid, int64_t* lists, ConvQ8Bands& bands) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  for (int i = 0; i < bands.count; ++i) {
    ConvQ8Band& band = bands.band[i];
    band.groups = lines_of(grid, i).count() * columns_of(grid, i).count() * grid.tap_groups;
    int64_t *offset = lists, *b_offset = lists + band.groups;
    band.offsets = offset;
    band.b_offsets = b_offset;
    lists += 2 * band.groups;
    for (int64_t tap = 0; tap < grid.taps(); ++tap) {
      if (!takes(grid, i, tap)) continue;
      offset = put_tap(grid, tap, offset);
      for (int64_t group = 0; group < grid.tap_groups; ++group) {
        *b_offset++ = (tap * grid.tap_groups + group) * a.nr * a.kg;
      }
    }
  }
}

Span overlap(Span a, Span b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

}  // namespace

bool may_have_conv_q8_bands(const OpArgs& args, Isa isa) { return shape_of(args, isa).count() > 0; }

size_t conv_q8_band_bytes(const OpArgs& args, Isa isa) {
  const Grid grid = grid_of(args, isa);
  if (grid.skips != DepthSkips::kParts) return 2 * sizeof(int64_t) * static_cast<size_t>(groups_of_all(grid));
  if (grid.count() == 0) return 0;
  const int64_t words = segments_of(grid) + grid.count() * biases_of(grid, args);
  return sizeof(int64_t) * static_cast<size_t>(grid.source.depth_groups()) +
         sizeof(int32_t) * static_cast<size_t>(words) + static_cast<size_t>(grid.count() * grid.parts());
}

ConvQ8Bands make_conv_q8_bands(const OpArgs& args, Isa isa, int64_t* lists) {
  const Grid grid = grid_of(args, isa);
  ConvQ8Bands bands{grid.count(), nullptr, nullptr, 0, {}};
  if (bands.count == 0) return bands;
  for (int i = 0; i < bands.count; ++i) {
    bands.band[i].lines = grid.lines.outputs[i / grid.columns.count];
    bands.band[i].columns = grid.columns.outputs[i % grid.columns.count];
  }
  if (grid.skips == DepthSkips::kParts) {
    list_parts(args, grid, lists, bands);
  } else {
    list_groups(args, grid, lists, bands);
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
