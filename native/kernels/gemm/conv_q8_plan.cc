#include "kernels/gemm/conv_q8_plan.h"

#include <algorithm>

#include "kernels/carver.h"
#include "kernels/gemm/conv_q8_scratch.h"

namespace edgekit {
namespace {

// As many rows as keep what a panel reads of A, row_bytes for each, within block_bytes, in equal blocks. The panel of B
// that sweeps over them stays in level 1.
int64_t rows_of_block(const ConvQ8Plan& plan, int64_t block_bytes, int64_t row_bytes) {
  const int64_t mr = plan.kernel->mr;
  const int64_t multiple = mr < 4 ? 4 : mr;
  const int64_t most = std::clamp<int64_t>(block_bytes / row_bytes / multiple, 4, 32) * multiple;
  const int64_t blocks = (plan.rows + most - 1) / most;
  const int64_t even = (plan.rows + blocks - 1) / blocks;
  return (even + mr - 1) / mr * mr;
}

// What one more row reads of x where windows overlap.
int64_t new_bytes_of_row(const ConvQ8Source& s) {
  const int64_t height = std::min(s.window.stride_h, s.window.kernel_h);
  const int64_t width = std::min(s.window.stride_w, s.window.kernel_w);
  return std::min(s.row_bytes(), height * width * s.channels);
}

}  // namespace

ConvQ8Plan plan_conv_q8(const OpArgs& args, Isa isa) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  const TensorView& y = args.out(0);
  ConvQ8Plan plan{};
  const ConvQ8Way way = conv_q8_way(args, isa);
  plan.kernel = way.kernel;
  plan.turned = way.turned;
  plan.source = conv_q8_source(args.in(0), y, a);
  plan.nr = a.nr;
  plan.kg = a.kg;
  plan.rows = int64_t{y.dims[0]} * y.dims[1] * y.dims[2];
  plan.groups = a.groups;
  plan.group_columns = y.dims[3] / a.groups;
  plan.panels = (plan.group_columns + a.nr - 1) / a.nr;
  plan.weight_rows = weight_rows_of(args, plan.groups * plan.panels);
  for (int64_t panel = 0; plan.weight_rows.starts != nullptr && panel < plan.groups * plan.panels; ++panel) {
    plan.most_rows = std::max(plan.most_rows, plan.weight_rows.count(panel));
  }
  plan.padding = conv_q8_padding(plan.source, plan.groups);
  plan.packed_rows = rows_of_block(plan, way.block_bytes, plan.source.row_bytes());
  plan.block_rows = plan.source.direct() ? std::max(plan.packed_rows,
                                                    rows_of_block(plan, way.block_bytes, new_bytes_of_row(plan.source)))
                                         : plan.packed_rows;
  if (plan.padding.lines > 0) {
    plan.block_rows = std::max(plan.block_rows, plan.padding.lines * plan.source.out_w);
    plan.packed_rows = 0;
  }
  Carver carver(nullptr);
  carve(plan, carver);
  plan.scratch_bytes = carver.used();
  return plan;
}

}  // namespace edgekit
