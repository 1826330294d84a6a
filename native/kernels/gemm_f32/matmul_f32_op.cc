// matmul_f32: both operands dynamic with any strides. A block of rows of a is read in place when dense along k,
// otherwise copied; a panel of columns of b likewise.
#include "kernels/copy/transpose.h"
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"

namespace edgekit {
namespace {

Status check(const OpArgs& args) {
  const TensorView &a = args.in(0), &b = args.in(1), &y = args.out(0);
  EK_RETURN_IF_ERROR(expect_dtype("a", a, Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_dtype("b", b, Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_dtype("y", y, Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_rank("a", a, 2, kMaxRank));
  EK_RETURN_IF_ERROR(expect_rank("b", b, a.rank, a.rank));
  EK_RETURN_IF_ERROR(expect_rank("y", y, a.rank, a.rank));
  const int m = a.rank - 2, n = a.rank - 1;
  for (int i = 0; i < m; ++i) {
    if (a.dims[i] != y.dims[i] || b.dims[i] != y.dims[i]) return invalid("matmul_f32: batch dims differ on axis %d", i);
  }
  if (a.dims[m] != y.dims[m] || b.dims[n] != y.dims[n] || a.dims[n] != b.dims[m]) {
    return invalid("matmul_f32: [%d, %d] x [%d, %d] does not give [%d, %d]", a.dims[m], a.dims[n], b.dims[m], b.dims[n],
                   y.dims[m], y.dims[n]);
  }
  return expect_writable("y", y);
}

// One matrix product of the batch, with the strides of its operands.
struct Product {
  int64_t m, n, k;
  int64_t a_m, a_k, b_k, b_n, y_m, y_n;
  int64_t block_rows;  // rows of a that go together
};

constexpr int64_t kBlockFloats = 64 * 1024;  // a block of a in the second-level cache

Product product_of(const OpArgs& args, int tile_rows) {
  const TensorView &a = args.in(0), &b = args.in(1), &y = args.out(0);
  const int m = a.rank - 2, n = a.rank - 1;
  Product p = {y.dims[m],    y.dims[n],    a.dims[n],    a.strides[m], a.strides[n],
               b.strides[m], b.strides[n], y.strides[m], y.strides[n], 0};
  const int64_t tiles = std::max<int64_t>(1, std::min<int64_t>(kMostBlockTiles, kBlockFloats / p.k / tile_rows));
  p.block_rows = std::min(tiles * tile_rows, p.m);
  return p;
}

bool reads_a_in_place(const Product& p) { return p.a_k == 1 || p.k == 1; }

// Few rows don't earn back the copy of b.
bool reads_b_in_place(const Product& p, int64_t columns, int nr, int tile_rows) {
  return p.b_n == 1 && columns == nr && p.m <= 2 * tile_rows;
}

size_t panel_floats(const Product& p, int nr) { return static_cast<size_t>(p.k) * static_cast<size_t>(nr); }

size_t worker_bytes(const Product& p, int nr) {
  const size_t a_floats = reads_a_in_place(p) ? 0 : static_cast<size_t>(p.block_rows * p.k);
  return ((a_floats + panel_floats(p, nr)) * sizeof(float) + 63) / 64 * 64;
}

int panel_columns(const GemmF32Kernels& kernels) { return kernels.nr != 0 ? kernels.nr : 16; }

size_t scratch_bytes(const OpArgs& args, int threads, Isa isa) {
  const GemmF32Kernels& kernels = gemm_f32_kernels(isa);
  return worker_bytes(product_of(args, kernels.mr), panel_columns(kernels)) * static_cast<size_t>(threads);
}

// to[j * to_step + i] = from[i * i_step + j * j_step], blocked where one side is dense.
void copy_plane(const float* from, int64_t i_step, int64_t j_step, int64_t rows, int64_t columns, float* to,
                int64_t to_step) {
  if (j_step == 1) {
    transpose_plane(from, i_step, to, to_step, rows, columns, sizeof(float));
    return;
  }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) to[j * to_step + i] = from[i * i_step + j * j_step];
  }
}

// Columns [first, first + columns) of b as a panel of nr, padded with zeros.
void pack_panel(const Product& p, const float* b, int64_t first, int64_t columns, int nr, float* panel) {
  const float* from = b + first * p.b_n;
  copy_plane(from, p.b_n, p.b_k, columns, p.k, panel, nr);
  if (columns == nr) return;
  for (int64_t k = 0; k < p.k; ++k) std::fill(panel + k * nr + columns, panel + (k + 1) * nr, 0.0f);
}

// Rows [first, first + count) of a, dense along k, in `packed` when they are not so in memory.
void locate_rows(const Product& p, const float* a, int64_t first, int64_t count, float* packed, const float** rows) {
  if (reads_a_in_place(p)) {
    for (int64_t r = 0; r < count; ++r) rows[r] = a + (first + r) * p.a_m;
    return;
  }
  copy_plane(a + first * p.a_m, p.a_k, p.a_m, p.k, count, packed, p.k);
  for (int64_t r = 0; r < count; ++r) rows[r] = packed + r * p.k;
}

// Results with any steps from one column to the next.
void scatter(const float* sums, const Product& p, int64_t rows, int nr, int64_t columns, float* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * p.y_m + c * p.y_n] = sums[r * nr + c];
  }
}

// A block of rows times the panels [begin, end).
void run_block(const GemmF32Kernels& kernels, const Product& p, float alpha, const float* b, float* y,
               const float* const* rows, int64_t count, int64_t begin, int64_t end, float* panel) {
  const int nr = panel_columns(kernels);
  const GemmEpilogue epilogue = gemm_epilogue({}, false, alpha);
  const float init[kMostPanelColumns] = {};
  const RowSteps steps[kMostBlockTiles] = {};
  float results[kMostBlockRows * kMostPanelColumns];
  float* places[kMostBlockRows];
  const bool stores_in_place = p.y_n == 1;
  for (int64_t r = 0; r < count; ++r) places[r] = stores_in_place ? y + r * p.y_m : results + r * nr;
  for (int64_t index = begin; index < end; ++index) {
    const int64_t first = index * nr, columns = std::min<int64_t>(nr, p.n - first);
    const bool in_place = reads_b_in_place(p, columns, nr, kernels.mr);
    if (!in_place) pack_panel(p, b, first, columns, nr, panel);
    GemmBlock block = {};
    block.a = rows;
    block.steps = steps;
    block.rows = count;
    block.tile_rows = kernels.mr;
    block.lines = block.runs = 1;
    block.depth = p.k;
    block.b = in_place ? b + first : panel;
    block.b_step = in_place ? p.b_k : nr;
    block.init = init;
    block.nr = nr;
    block.columns = static_cast<int>(columns);
    block.epilogue = &epilogue;
    block.y = places;
    block.column = stores_in_place ? first : 0;
    kernels.block(block);
    if (!stores_in_place) scatter(results, p, count, nr, columns, y + first * p.y_n);
  }
}

// The loops over the batch, of a, b and y.
LoopNest<3> batch_loops(const OpArgs& args) {
  LoopNest<3> nest;
  for (int i = 0; i + 2 < args.out(0).rank; ++i) {
    const int64_t strides[3] = {args.in(0).strides[i], args.in(1).strides[i], args.out(0).strides[i]};
    append_loop(nest, args.out(0).dims[i], strides);
  }
  return nest;
}

// Units of work are (product of the batch, block of rows, slice of panels); panels are only split when units are few.
Status run(const OpArgs& args, RunContext& context) {
  const GemmF32Kernels& kernels = gemm_f32_kernels(context.isa);
  const int nr = panel_columns(kernels);
  const Product p = product_of(args, kernels.mr);
  const LoopNest<3> batch = batch_loops(args);
  const int64_t products = batch.run_count() * batch.run_length();
  const int64_t blocks = (p.m + p.block_rows - 1) / p.block_rows, panels = (p.n + nr - 1) / nr;
  int64_t slices = 1;
  while (products * blocks * slices < 4 * context.threads && slices * 2 <= panels && context.threads > 1) slices *= 2;
  const double unit_ns =
      static_cast<double>(p.block_rows * p.k) * static_cast<double>(p.n) / static_cast<double>(slices) / 30.0;
  parallel_for(context, products * blocks * slices, unit_ns, [&](int64_t begin, int64_t end, int worker) {
    float* panel = reinterpret_cast<float*>(context.scratch + worker_bytes(p, nr) * static_cast<size_t>(worker));
    float* packed = panel + panel_floats(p, nr);
    const float* rows[kMostBlockRows];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t slice = unit % slices, block = unit / slices % blocks, product = unit / slices / blocks;
      const int64_t step = product % batch.run_length(), first = block * p.block_rows;
      const int64_t count = std::min(p.block_rows, p.m - first);
      for_each_run(batch, product / batch.run_length(), product / batch.run_length() + 1, [&](const int64_t(&at)[3]) {
        const float* a = args.in(0).as<const float>() + at[0] + step * batch.run_stride(0);
        const float* b = args.in(1).as<const float>() + at[1] + step * batch.run_stride(1);
        float* y = args.out(0).as<float>() + at[2] + step * batch.run_stride(2) + first * p.y_m;
        locate_rows(p, a, first, count, packed, rows);
        run_block(kernels, p, args.attrs<MatmulF32Attrs>().alpha, b, y, rows, count, panels * slice / slices,
                  panels * (slice + 1) / slices, panel);
      });
    }
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return std::string("gemm_f32_") + gemm_f32_kernel_space(isa); }

}  // namespace

const OpDef kMatmulF32Op = {Opcode::kMatmulF32, "matmul_f32", check, scratch_bytes, run, nullptr, nullptr, kernel};

}  // namespace edgekit
