#include <algorithm>

#include "kernels/copy/transpose.h"
#include "kernels/loop_nest.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/softmax/softmax.h"

namespace edgekit {
namespace {

#define EK_KERNELS(isa, space) {Isa::isa, #space, space::softmax_kernels},
constexpr Variant<SoftmaxKernels> kVariants[] = {
#include "kernels/softmax/kernels.inc"
};
#undef EK_KERNELS

Status check(const OpArgs& args) {
  const auto& attrs = args.attrs<SoftmaxAttrs>();
  EK_RETURN_IF_ERROR(expect_dtype("x", args.in(0), Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_dtype("y", args.out(0), Dtype::kF32));
  EK_RETURN_IF_ERROR(expect_same_dims("x", args.in(0), "y", args.out(0)));
  EK_RETURN_IF_ERROR(expect_rank("x", args.in(0), 1, kMaxRank));
  EK_RETURN_IF_ERROR(expect_in_range("axis", attrs.axis, 0, args.in(0).rank - 1));
  EK_RETURN_IF_ERROR(expect_in_range("log", attrs.log, 0, 1));
  return expect_writable("y", args.out(0));
}

// Short lines are transposed, as many as a vector has lanes, and go side by side.
constexpr int64_t kShortLine = 64;
constexpr int64_t kMostLanes = 16;

// Scratch of a worker: a dense line of x and of y for operands that are strided along the axis, or a vector of short
// lines of each.
size_t worker_bytes(const OpArgs& args) {
  const size_t length = static_cast<size_t>(args.in(0).dims[args.attrs<SoftmaxAttrs>().axis]);
  const size_t lines = length <= kShortLine ? kMostLanes : 1;
  return (2 * length * lines * sizeof(float) + 63) / 64 * 64;
}

size_t scratch_bytes(const OpArgs& args, int threads, Isa) { return worker_bytes(args) * static_cast<size_t>(threads); }

// One run of lines: `count` lines, x_step and y_step apart.
struct LineRun {
  const float* x;
  float* y;
  int64_t count, x_step, y_step;

  LineRun part(int64_t first, int64_t lines) const {
    return {x + first * x_step, y + first * y_step, lines, x_step, y_step};
  }
};

// What all lines of one call have in common; strides along the axis.
struct Lines {
  const SoftmaxKernels& kernels;
  int64_t length, x_stride, y_stride;
  bool log;
  float* scratch;

  bool is_dense() const { return length == 1 || (x_stride == 1 && y_stride == 1); }
};

// Lines with any strides, through dense copies.
void staged_lines(const Lines& lines, const LineRun& run) {
  float* dense_x = lines.scratch;
  float* dense_y = lines.scratch + lines.length;
  for (int64_t line = 0; line < run.count; ++line) {
    const float* x = run.x + line * run.x_step;
    float* y = run.y + line * run.y_step;
    for (int64_t i = 0; i < lines.length; ++i) dense_x[i] = x[i * lines.x_stride];
    lines.kernels.softmax_lines({1, lines.length, 0, 0, lines.log}, dense_x, dense_y);
    for (int64_t i = 0; i < lines.length; ++i) y[i * lines.y_stride] = dense_y[i];
  }
}

// Dense lines or columns of one run.
void softmax_run(const Lines& lines, LineRun run) {
  if (lines.is_dense()) {
    lines.kernels.softmax_lines({run.count, lines.length, run.x_step, run.y_step, lines.log}, run.x, run.y);
    return;
  }
  if (run.x_step == 1 && run.y_step == 1) {
    const int64_t columns = run.count / lines.kernels.lanes * lines.kernels.lanes;
    lines.kernels.softmax_columns({columns, lines.length, lines.x_stride, lines.y_stride, lines.log}, run.x, run.y);
    run = run.part(columns, run.count - columns);
  }
  staged_lines(lines, run);
}

// Collects dense short lines of one run after the other until a vector is full.
class ShortLines {
 public:
  explicit ShortLines(const Lines& lines)
      : lines_(lines), x_(lines.scratch), y_(lines.scratch + lines.length * lines.kernels.lanes) {}

  void add(LineRun run) {
    while (run.count > 0) {
      const int64_t taken = std::min(run.count, lines_.kernels.lanes - held_);
      parts_[part_count_++] = run.part(0, taken);
      transpose_plane(run.x, run.x_step, x_ + held_, lines_.kernels.lanes, taken, lines_.length, sizeof(float));
      held_ += taken;
      if (held_ == lines_.kernels.lanes) flush();
      run = run.part(taken, run.count - taken);
    }
  }

  // The lines that don't fill a vector.
  void finish() {
    for (int i = 0; i < part_count_; ++i) softmax_run(lines_, parts_[i]);
    part_count_ = 0;
    held_ = 0;
  }

 private:
  void flush() {
    const int64_t lanes = lines_.kernels.lanes;
    lines_.kernels.softmax_columns({lanes, lines_.length, lanes, lanes, lines_.log}, x_, y_);
    const float* y = y_;
    for (int i = 0; i < part_count_; ++i) {
      const LineRun& part = parts_[i];
      transpose_plane(y, lanes, part.y, part.y_step, lines_.length, part.count, sizeof(float));
      y += part.count;
    }
    part_count_ = 0;
    held_ = 0;
  }

  const Lines& lines_;
  float *x_, *y_;
  LineRun parts_[kMostLanes];
  int part_count_ = 0;
  int64_t held_ = 0;
};

// The loops over the lines, in the order of x's memory.
LoopNest<2> line_loops(const OpArgs& args) {
  TensorView x = args.in(0), y = args.out(0);
  const int axis = args.attrs<SoftmaxAttrs>().axis;
  x.dims[axis] = y.dims[axis] = 1;
  const TensorView* const views[2] = {&x, &y};
  return collapse_by(views, 0);
}

// Units of work are groups of lines within one run, so that each call of a kernel has several.
Status run(const OpArgs& args, RunContext& context) {
  constexpr int64_t kGroup = 64;
  const auto& attrs = args.attrs<SoftmaxAttrs>();
  const TensorView &x = args.in(0), &y = args.out(0);
  const SoftmaxKernels& kernels = softmax_kernels(context.isa);
  const LoopNest<2> nest = line_loops(args);
  const int64_t groups = (nest.run_length() + kGroup - 1) / kGroup, length = x.dims[attrs.axis];
  const double group_ns =
      static_cast<double>(std::min(kGroup, nest.run_length())) * (10.0 + 2.0 * static_cast<double>(length));
  parallel_for(context, nest.run_count() * groups, group_ns, [&](int64_t begin, int64_t end, int worker) {
    float* scratch = reinterpret_cast<float*>(context.scratch + worker_bytes(args) * static_cast<size_t>(worker));
    const Lines lines = {kernels, length, x.strides[attrs.axis], y.strides[attrs.axis], attrs.log != 0, scratch};
    ShortLines short_lines(lines);
    const bool collects = lines.is_dense() && length > 1 && length <= kShortLine;
    int64_t first = begin % groups * kGroup;
    for_each_run(nest, begin / groups, (end + groups - 1) / groups, [&](const int64_t(&at)[2]) {
      const LineRun whole = {x.as<const float>() + at[0], y.as<float>() + at[1], nest.run_length(), nest.run_stride(0),
                             nest.run_stride(1)};
      for (; first < whole.count && begin < end; first += kGroup, ++begin) {
        const LineRun group = whole.part(first, std::min(kGroup, whole.count - first));
        collects ? short_lines.add(group) : softmax_run(lines, group);
      }
      first = 0;
    });
    short_lines.finish();
  });
  return Status::ok();
}

std::string kernel(const OpArgs&, Isa isa) { return std::string("softmax_") + softmax_kernel_space(isa); }

}  // namespace

const SoftmaxKernels& softmax_kernels(Isa isa) { return select_variant(kVariants, isa); }

const char* softmax_kernel_space(Isa isa) { return best_variant(kVariants, isa).name; }

const OpDef kSoftmaxOp = {Opcode::kSoftmax, "softmax", check, scratch_bytes, run, nullptr, nullptr, kernel};

}  // namespace edgekit
