// conv_q8_winograd: checks its operands, then tile block by tile block transforms x, multiplies by each panel of
// weights and finishes the panel's columns of y.
#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/carver.h"
#include "kernels/conv_window.h"
#include "kernels/op.h"
#include "kernels/operand_check.h"
#include "kernels/parallel.h"
#include "kernels/winograd/winograd_q8.h"

namespace edgekit {
namespace {

ConvWindow window_of(const ConvQ8WinogradAttrs& a) { return {3, 3, 1, 1, 1, 1, a.pad_top, a.pad_left}; }

RequantizeOperands requantize_operands(const OpArgs& args) {
  return {args.out(0), args.in(3), args.input_count > 4 ? args.inputs[4] : nullptr,
          args.input_count > 5 ? args.inputs[5] : nullptr};
}

int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

Status check_conv_q8_winograd(const OpArgs& args) {
  const auto& a = args.attrs<ConvQ8WinogradAttrs>();
  const TensorView& x = args.in(0);
  const TensorView& y = args.out(0);
  EK_RETURN_IF_ERROR(check_conv_window(window_of(a), x, y));
  EK_RETURN_IF_ERROR(expect_dtype("x", x, Dtype::kU8));
  EK_RETURN_IF_ERROR(expect_same_dtype("x", x, "y", y));
  EK_RETURN_IF_ERROR(expect_in_range("channels", x.dims[3], 1, 1 << 16));
  const int64_t dims[4] = {divided_up(y.dims[3], kWinogradColumns), divided_up(x.dims[3], 2), 9, 2 * kWinogradColumns};
  EK_RETURN_IF_ERROR(expect_dense("w", args.in(1), Dtype::kS8, dims, 4));
  EK_RETURN_IF_ERROR(expect_vector("bias", args.in(2), Dtype::kI32, y.dims[3]));
  EK_RETURN_IF_ERROR(expect_writable("y", y));
  return check_requantize(requantize_attrs(a), requantize_operands(args));
}

constexpr int64_t kStepPairs = 32;  // of channels: a row of their u stays in level 1

struct WinogradPlan {
  const WinogradQ8Kernels* kernels;
  int64_t tile_rows, tile_columns, tiles;  // of y; all images
  int64_t channels;                        // of x, in whole steps of the transform
  int64_t pairs, panels;
  int64_t step_pairs;     // whose weights are expanded at a time
  int64_t block_tiles;    // transformed at a time
  int64_t position_step;  // of v
  int64_t panel_step;     // of m
  size_t scratch_bytes;   // of one worker

  // Of u, a row of it, again an odd number of lines from column to column.
  int64_t u_column_step() const { return (step_pairs / 2 * 2 + 1) * kWinogradColumns; }
  int64_t u_panel_step() const { return kWinogradIn * u_column_step(); }
};

// What one worker keeps.
struct WinogradScratch {
  int16_t* v;
  int32_t* m;
  int32_t* u;
  uint8_t* patch;    // a tile that reaches out of the image
  uint8_t* outside;  // where pixels beyond y go, and what is read there as residual
  uint8_t** y;
  const uint8_t** residual;
  int32_t* bias;  // of a panel that is not full, and its scale
  float* scale;
};

WinogradScratch carve(const WinogradPlan& plan, Carver& carver) {
  WinogradScratch s{};
  s.v = carver.take<int16_t>(kWinogradPositions * plan.position_step);
  s.m = carver.take<int32_t>(plan.kernels->most_panels * plan.panel_step);
  s.u = carver.take<int32_t>(plan.kernels->most_panels * plan.u_panel_step());
  s.patch = carver.take<uint8_t>(kWinogradPositions * plan.channels);
  s.outside = carver.take<uint8_t>(plan.panels * kWinogradColumns);
  s.y = carver.take<uint8_t*>(plan.block_tiles * kWinogradPixels);
  s.residual = carver.take<const uint8_t*>(plan.block_tiles * kWinogradPixels);
  s.bias = carver.take<int32_t>(kWinogradColumns);
  s.scale = carver.take<float>(kWinogradColumns);
  return s;
}

// As many tiles as keep v and m in a level-2 cache of 512 KiB (the first of these, unless `edgekit tune` has found
// another one to be faster), in equal blocks: each expands all weights anew.
constexpr int64_t kBlockKib[] = {384, 96, 224};  // by OpArgs::way
constexpr int kBlocks = 3;

int64_t tiles_of_block(const WinogradPlan& plan, int64_t block_bytes) {
  constexpr int64_t kStep = 6;
  const int64_t column_bytes = int64_t{plan.kernels->most_panels} * kWinogradColumns * 4;
  const int64_t tile_bytes = kWinogradPositions * (plan.channels * 2 + column_bytes);
  const int64_t most = std::clamp<int64_t>(block_bytes / tile_bytes / kStep, 2, 8) * kStep;
  return divided_up(plan.tiles, divided_up(plan.tiles, most));
}

WinogradPlan plan_conv_q8_winograd(const OpArgs& args, Isa isa) {
  const TensorView& x = args.in(0);
  const TensorView& y = args.out(0);
  WinogradPlan plan{};
  plan.kernels = &select_winograd_q8(isa);
  plan.tile_rows = divided_up(y.dims[1], kWinogradOut);
  plan.tile_columns = divided_up(y.dims[2], kWinogradOut);
  plan.tiles = y.dims[0] * plan.tile_rows * plan.tile_columns;
  plan.channels = divided_up(x.dims[3], kWinogradChannels) * kWinogradChannels;
  plan.pairs = divided_up(x.dims[3], 2);
  plan.panels = divided_up(y.dims[3], kWinogradColumns);
  plan.step_pairs = std::min(plan.pairs, kStepPairs);
  plan.block_tiles = tiles_of_block(plan, kBlockKib[args.way] * 1024);
  // An odd number of cache lines, so that the positions of a tile lie in different sets of the cache.
  plan.position_step = divided_up(plan.block_tiles * plan.channels, 64) * 64 + 32;
  plan.panel_step = plan.block_tiles * kWinogradPositions * kWinogradColumns;
  Carver carver(nullptr);
  carve(plan, carver);
  plan.scratch_bytes = carver.used();
  return plan;
}

size_t scratch_conv_q8_winograd(const OpArgs& args, int threads, Isa isa) {
  return plan_conv_q8_winograd(args, isa).scratch_bytes * static_cast<size_t>(threads);
}

size_t state_conv_q8_winograd(const OpArgs&, Isa) { return sizeof(RequantizeQ8); }

void prepare_conv_q8_winograd(const OpArgs& args, Isa, std::byte* state) {
  const auto& a = args.attrs<ConvQ8WinogradAttrs>();
  new (state) RequantizeQ8(requantize_params(requantize_attrs(a), requantize_operands(args)));
}

// Half open.
struct Range {
  int64_t begin, end;
};

class Worker {
 public:
  Worker(const OpArgs& args, const WinogradPlan& plan, const RequantizeQ8& requantize, std::byte* scratch)
      : x_(args.in(0)), y_(args.out(0)), args_(args), plan_(plan), carver_(scratch), scratch_(carve(plan, carver_)) {
    const auto& a = args.attrs<ConvQ8WinogradAttrs>();
    window_ = window_of(a);
    x_zero_ = a.x_zero;
    rows_.requantize = &requantize;
    rows_.y = scratch_.y;
    rows_.residual = scratch_.residual;
    patch_.channels = plan.channels;
    patch_.position_step = plan.position_step;
    std::memset(scratch_.outside, 0, static_cast<size_t>(plan.panels * kWinogradColumns));
  }

  void run(Range tiles, Range panels) {
    for (int64_t first = tiles.begin; first < tiles.end; first += plan_.block_tiles) {
      const int64_t count = std::min(plan_.block_tiles, tiles.end - first);
      for (int64_t i = 0; i < count; ++i) provide_tile(first + i, i);
      const int most = plan_.kernels->most_panels;
      for (int64_t panel = panels.begin; panel < panels.end; panel += most) {
        run_panels(panel, static_cast<int>(std::min<int64_t>(most, panels.end - panel)), count);
      }
    }
  }

 private:
  // v of a tile, and where its pixels of y lie.
  void provide_tile(int64_t tile, int64_t index) {
    const int64_t line = tile / plan_.tile_columns;
    const int64_t oy = line % plan_.tile_rows * kWinogradOut, ox = tile % plan_.tile_columns * kWinogradOut;
    const int64_t n = line / plan_.tile_rows;
    point_pixels(n, oy, ox, index * kWinogradPixels);
    point_patch(n, window_.first_row(oy), window_.first_column(ox));
    patch_.v = scratch_.v + index * plan_.channels;
    plan_.kernels->transform(patch_);
  }

  void point_pixels(int64_t n, int64_t oy, int64_t ox, int64_t first) {
    const TensorView* residual = rows_.requantize->add ? args_.inputs[5] : nullptr;
    for (int i = 0; i < kWinogradPixels; ++i) {
      const int64_t row = oy + i / kWinogradOut, column = ox + i % kWinogradOut;
      const bool inside = row < y_.dims[1] && column < y_.dims[2];
      const auto at = [&](const TensorView& view) {
        return view.as<uint8_t>() + n * view.strides[0] + row * view.strides[1] + column * view.strides[2];
      };
      scratch_.y[first + i] = inside ? at(y_) : scratch_.outside;
      scratch_.residual[first + i] = inside && residual != nullptr ? at(*residual) : scratch_.outside;
    }
  }

  // The tile where it stands, if all of it lies in x and whole steps of channels too, else a copy.
  void point_patch(int64_t n, int64_t iy, int64_t ix) {
    const bool inside = iy >= 0 && iy + kWinogradIn <= x_.dims[1] && ix >= 0 && ix + kWinogradIn <= x_.dims[2];
    const uint8_t* image = x_.as<const uint8_t>() + n * x_.strides[0];
    if (inside && x_.dims[3] == plan_.channels) {
      patch_.x = image + iy * x_.strides[1] + ix * x_.strides[2];
      patch_.row_step = x_.strides[1];
      patch_.column_step = x_.strides[2];
      return;
    }
    patch_.x = scratch_.patch;
    patch_.row_step = kWinogradIn * plan_.channels;
    patch_.column_step = plan_.channels;
    std::memset(scratch_.patch, x_zero_, static_cast<size_t>(kWinogradPositions * plan_.channels));
    for (int p = 0; p < kWinogradPositions; ++p) {
      const int64_t row = iy + p / kWinogradIn, column = ix + p % kWinogradIn;
      if (row < 0 || row >= x_.dims[1] || column < 0 || column >= x_.dims[2]) continue;
      std::memcpy(scratch_.patch + p * plan_.channels, image + row * x_.strides[1] + column * x_.strides[2],
                  static_cast<size_t>(x_.dims[3]));
    }
  }

  void run_panels(int64_t panel, int count, int64_t tiles) {
    WinogradQ8Product product{};
    product.position_step = plan_.position_step;
    product.tile_step = plan_.channels;
    product.u = scratch_.u;
    product.u_column_step = plan_.u_column_step();
    product.u_panel_step = plan_.u_panel_step();
    product.panel_step = plan_.panel_step;
    product.tiles = tiles;
    product.panels = count;
    for (int64_t pair = 0; pair < plan_.pairs; pair += plan_.step_pairs) {
      product.pairs = std::min(plan_.step_pairs, plan_.pairs - pair);
      product.accumulate = pair > 0;
      for (int row = 0; row < kWinogradIn; ++row) {
        for (int i = 0; i < count; ++i) {
          const int8_t* w = args_.in(1).as<const int8_t>() + ((panel + i) * plan_.pairs + pair) * 18 * kWinogradColumns;
          plan_.kernels->expand({w, product.pairs, row, scratch_.u + i * product.u_panel_step, product.u_column_step});
        }
        product.v = scratch_.v + row * kWinogradIn * plan_.position_step + 2 * pair;
        product.m = scratch_.m + row * kWinogradIn * kWinogradColumns;
        plan_.kernels->multiply(product);
      }
    }
    for (int i = 0; i < count; ++i) finish_panel(panel + i, scratch_.m + i * plan_.panel_step, tiles);
  }

  void finish_panel(int64_t panel, const int32_t* m, int64_t tiles) {
    rows_.channel = panel * kWinogradColumns;
    rows_.columns = static_cast<int>(std::min<int64_t>(kWinogradColumns, y_.dims[3] - rows_.channel));
    rows_.rows = tiles * kWinogradPixels;
    rows_.bias = args_.in(2).as<const int32_t>() + rows_.channel;
    rows_.scale = args_.in(3).as<const float>() + rows_.channel;
    if (rows_.columns < kWinogradColumns) {  // kernels read whole panels of both
      std::fill(std::copy_n(rows_.bias, rows_.columns, scratch_.bias), scratch_.bias + kWinogradColumns, 0);
      std::fill(std::copy_n(rows_.scale, rows_.columns, scratch_.scale), scratch_.scale + kWinogradColumns, 0.0f);
      rows_.bias = scratch_.bias;
      rows_.scale = scratch_.scale;
    }
    plan_.kernels->finish(m, rows_);
  }

  const TensorView& x_;
  const TensorView& y_;
  const OpArgs& args_;
  const WinogradPlan& plan_;
  Carver carver_;
  WinogradScratch scratch_;
  ConvWindow window_{};
  int32_t x_zero_ = 0;
  WinogradQ8Patch patch_{};
  GemmQ8Rows rows_{};
};

constexpr double kMacNs = 0.004;  // rough cost of one of the convolution's multiply-accumulates

Status run_conv_q8_winograd(const OpArgs& args, RunContext& context) {
  const WinogradPlan plan = plan_conv_q8_winograd(args, context.isa);
  const auto& requantize = *reinterpret_cast<const RequantizeQ8*>(context.state);
  // Tiles are transformed once a thread, weights are read once a thread: few tiles share columns instead.
  const bool by_columns = plan.tiles < 12 * int64_t{context.threads};
  const int64_t units = by_columns ? plan.panels : plan.tiles;
  const double macs = static_cast<double>(plan.tiles * kWinogradPixels) * 9 * static_cast<double>(plan.channels) *
                      static_cast<double>(args.out(0).dims[3]);
  parallel_for(context, units, macs * kMacNs / static_cast<double>(units), [&](int64_t begin, int64_t end, int worker) {
    Worker own(args, plan, requantize, context.scratch + static_cast<size_t>(worker) * plan.scratch_bytes);
    if (by_columns) {
      own.run({0, plan.tiles}, {begin, end});
    } else {
      own.run({begin, end}, {0, plan.panels});
    }
  });
  return Status::ok();
}

int ways_conv_q8_winograd(const OpArgs&, int, Isa) { return kBlocks; }

std::string kernel_conv_q8_winograd(const OpArgs& args, Isa isa) {
  const std::string name = select_winograd_q8(isa).name;
  return args.way == 0 ? name : name + " blocks of " + std::to_string(kBlockKib[args.way]) + " KiB";
}

}  // namespace

const OpDef kConvQ8WinogradOp = {Opcode::kConvQ8Winograd,  "conv_q8_winograd",      check_conv_q8_winograd,
                                 scratch_conv_q8_winograd, run_conv_q8_winograd,    state_conv_q8_winograd,
                                 prepare_conv_q8_winograd, kernel_conv_q8_winograd, ways_conv_q8_winograd};

}  // namespace edgekit
