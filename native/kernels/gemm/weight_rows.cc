#include "kernels/gemm/weight_rows.h"

#include <algorithm>

#include "kernels/operand_check.h"

namespace edgekit {
namespace {

constexpr int kStarts = 6, kGroups = 7, kOrders = 8;  // inputs of conv_q8

const TensorView* input(const OpArgs& args, int i) { return args.input_count > i ? args.inputs[i] : nullptr; }

const int32_t* indices(const TensorView* view) { return view == nullptr ? nullptr : view->as<const int32_t>(); }

// Indices that the kernels follow: every start in order, every depth group one that there is.
Status check_indices(const TensorView& starts, const TensorView& groups, int64_t depth_groups) {
  EK_RETURN_IF_ERROR(expect_constant("row_start", starts));
  EK_RETURN_IF_ERROR(expect_constant("row_group", groups));
  const auto* start = indices(&starts);
  const int64_t count = groups.dims[0];
  EK_RETURN_IF_ERROR(expect_in_range("row_start", start[0], 0, 0));
  for (int64_t i = 1; i < starts.dims[0]; ++i) {
    const bool last = i + 1 == starts.dims[0];
    EK_RETURN_IF_ERROR(expect_in_range("row_start", start[i], last ? count : start[i - 1], count));
  }
  for (int64_t i = 0; i < count; ++i) {
    EK_RETURN_IF_ERROR(expect_in_range("row_group", indices(&groups)[i], 0, depth_groups - 1));
  }
  return Status::ok();
}

// Orders pick of sixteen bytes, which have to lie side by side: in one run, and in one tap where taps may lie apart.
Status check_orders(const ConvQ8Source& source, const WeightRows& rows, int64_t panels, const TensorView& orders) {
  EK_RETURN_IF_ERROR(expect_constant("row_order", orders));
  const int64_t piece = source.channels % source.kg == 0 ? source.channels / source.kg : source.run_groups;
  int64_t picked = 0;
  for (int64_t segment = kRowForms; segment < panels * rows.segments; segment += rows.forms()) {
    picked += rows.starts[segment + 1] - rows.starts[segment];
    for (int32_t row = rows.starts[segment]; row < rows.starts[segment + 1]; ++row) {
      const int64_t place = rows.groups[row] % source.run_groups % piece;
      EK_RETURN_IF_ERROR(expect_in_range("place of a row_group with row_order", place, 0, piece - kPickedGroups));
    }
  }
  EK_RETURN_IF_ERROR(expect_vector("row_order", orders, Dtype::kI32, picked));
  for (int64_t i = 0; i < picked; ++i) {
    EK_RETURN_IF_ERROR(expect_in_range("row_order & ~0x0f0f0f0f", rows.orders[i] & ~0x0f0f0f0f, 0, 0));
  }
  return Status::ok();
}

}  // namespace

WeightRows weight_rows_of(const OpArgs& args, int64_t panels) {
  if (input(args, kStarts) == nullptr) return {};
  const TensorView& starts = args.in(kStarts);
  return {indices(&starts), indices(input(args, kGroups)), indices(input(args, kOrders)),
          (starts.dims[0] - 1) / panels};
}

int64_t tap_of_part(const WeightRows& rows, const ConvQ8Source& source, int64_t panels, int64_t part) {
  const int64_t tap_groups = source.channels / source.kg;
  int64_t tap = -1;
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int32_t* start = rows.starts + rows.segments * panel + rows.forms() * part;
    for (int32_t row = start[0]; row < start[rows.forms()]; ++row) {
      const int64_t own = rows.groups[row] / tap_groups;
      if (tap >= 0 && own != tap) return -1;
      tap = own;
    }
  }
  return std::max<int64_t>(tap, 0);
}

Status check_weight_rows(const OpArgs& args, const ConvQ8Source& source, int64_t panels) {
  const TensorView *starts = input(args, kStarts), *groups = input(args, kGroups), *orders = input(args, kOrders);
  if (starts == nullptr || groups == nullptr) return invalid("row_start and row_group go together");
  EK_RETURN_IF_ERROR(expect_in_range("kg", source.kg, 4, 4));
  EK_RETURN_IF_ERROR(expect_rank("row_start", *starts, 1, 1));
  const int64_t part = panels * (orders == nullptr ? kRowForms : kRowForms + 1);
  const int64_t parts = std::max<int64_t>(1, (starts->dims[0] - 1) / part);
  EK_RETURN_IF_ERROR(expect_vector("row_start", *starts, Dtype::kI32, parts * part + 1));
  EK_RETURN_IF_ERROR(expect_rank("row_group", *groups, 1, 1));
  EK_RETURN_IF_ERROR(expect_vector("row_group", *groups, Dtype::kI32, groups->dims[0]));
  EK_RETURN_IF_ERROR(check_indices(*starts, *groups, source.depth_groups()));
  if (orders == nullptr) return Status::ok();
  return check_orders(source, weight_rows_of(args, panels), panels, *orders);
}

const int32_t* PanelOrders::of(int64_t panel) {
  if (rows_.orders == nullptr) return nullptr;
  if (panel < panel_) {
    panel_ = 0;
    at_ = rows_.orders;
  }
  for (; panel_ < panel; ++panel_) {
    const int32_t* start = rows_.starts + rows_.segments * panel_;
    for (int64_t i = rows_.forms(); i <= rows_.segments; i += rows_.forms()) at_ += start[i] - start[i - 1];
  }
  return at_;
}

}  // namespace edgekit
