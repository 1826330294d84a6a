// Times float and data-moving ops with the kernels of one instruction set: convolutions of real networks (layers of
// layers.inc) and of ResNet-18, matmuls, softmax, activations, transposes, resizing, pools.
//
//   bench_f32 [--isa NAME] [--threads N] [--filter TEXT] [--act none|relu|clip|silu]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/layers.h"
#include "kernels/roofline/roofline.h"

namespace edgekit::bench {
namespace {

struct Options : BenchOptions {
  Activation act = Activation::kRelu;  // that convolutions fuse
};

// Memory of `count` random elements: floats in [-1, 1], or bytes.
class Memory {
 public:
  explicit Memory(size_t floats) : values_(floats + kLine) {
    for (float& value : values_) value = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX) * 2.0f - 1.0f;
  }
  // On a cache line, as the engine's buffers are.
  void* data() {
    const auto at = reinterpret_cast<uintptr_t>(values_.data()), line = kLine * sizeof(float);
    return reinterpret_cast<void*>((at + line - 1) / line * line);
  }

 private:
  static constexpr size_t kLine = 16;
  std::vector<float> values_;
};

// One op on views of memory that the caller keeps; `units` is what a rate counts (MACs, or bytes moved).
struct Case {
  std::string name;
  const OpDef* op;
  std::vector<TensorView> inputs, outputs;
  const void* attributes;
  double units;
  const char* unit;
};

double measure_ns(const Case& one, const BenchOptions& options) {
  std::vector<const TensorView*> inputs, outputs;
  for (const TensorView& view : one.inputs) inputs.push_back(&view);
  for (const TensorView& view : one.outputs) outputs.push_back(&view);
  const OpArgs args = {inputs.data(), static_cast<int>(inputs.size()), outputs.data(), static_cast<int>(outputs.size()),
                       one.attributes};
  return best_op_ns(one.name.c_str(), *one.op, args, options);
}

void measure(const Case& one, const BenchOptions& options) {
  if (one.name.find(options.filter) == std::string::npos) return;
  const double ns = measure_ns(one, options);
  std::printf("%-32s %10.1f us %9.2f %s\n", one.name.c_str(), ns / 1e3, one.units / ns, one.unit);
}

void bench_convolution(const Layer& layer, double peak, const Options& options) {
  if (std::string(layer.name).find(options.filter) == std::string::npos) return;
  const int out = layer.out_size(), depth = layer.depth(), pad = layer.pad(), nr = packing_of(options.isa).f32_nr;
  const int panels = (layer.out_channels + nr - 1) / nr, act = static_cast<int>(options.act);
  Memory x(static_cast<size_t>(layer.size) * layer.size * layer.channels), bias(layer.out_channels);
  Memory w(static_cast<size_t>(panels) * depth * nr), y(static_cast<size_t>(out) * out * layer.out_channels);
  const ConvF32Attrs conv = {1, layer.kernel, layer.kernel, layer.stride, layer.stride, 1, 1, pad, pad, nr, act, 0, 6,
                             0};
  const DepthwiseF32Attrs depthwise = {
      layer.kernel, layer.kernel, layer.stride, layer.stride, 1, 1, pad, pad, act, 0, 6, 0};
  const TensorView weights = layer.depthwise ? dense(w.data(), Dtype::kF32, {depth, layer.channels})
                                             : dense(w.data(), Dtype::kF32, {1, panels, depth, nr});
  const Case one = {layer.name,
                    layer.depthwise ? &kDepthwiseF32Op : &kConvF32Op,
                    {dense(x.data(), Dtype::kF32, {1, layer.size, layer.size, layer.channels}), weights,
                     dense(bias.data(), Dtype::kF32, {layer.out_channels})},
                    {dense(y.data(), Dtype::kF32, {1, out, out, layer.out_channels})},
                    layer.depthwise ? static_cast<const void*>(&depthwise) : &conv,
                    layer.macs(),
                    "GMAC/s"};
  print_layer(layer, measure_ns(one, options), peak);
}

void bench_matmuls(const BenchOptions& options) {
  struct Shape {
    const char* name;
    int batch, m, n, k;
    bool b_transposed;
  };
  const MatmulF32Attrs attrs = {1.0f};
  for (const Shape& s : {Shape{"matmul 512^3", 1, 512, 512, 512, false},
                         {"matmul q k^T 12x197x64", 12, 197, 197, 64, true},
                         {"matmul p v 12x197", 12, 197, 64, 197, false},
                         {"matmul row 1x512x512", 1, 1, 512, 512, false}}) {
    Memory a(static_cast<size_t>(s.batch) * s.m * s.k), b(static_cast<size_t>(s.batch) * s.k * s.n);
    Memory y(static_cast<size_t>(s.batch) * s.m * s.n);
    TensorView b_view = dense(b.data(), Dtype::kF32, {s.batch, s.k, s.n});
    if (s.b_transposed) b_view.strides[1] = 1, b_view.strides[2] = s.k;
    measure({s.name,
             &kMatmulF32Op,
             {dense(a.data(), Dtype::kF32, {s.batch, s.m, s.k}), b_view},
             {dense(y.data(), Dtype::kF32, {s.batch, s.m, s.n})},
             &attrs,
             static_cast<double>(s.batch) * s.m * s.n * s.k,
             "GMAC/s"},
            options);
  }
}

void bench_lines(const BenchOptions& options) {
  Memory x(4 * 8400 * 16), y(4 * 8400 * 16);
  const auto softmax = [&](const char* name, std::initializer_list<int32_t> dims, int axis) {
    const SoftmaxAttrs attrs = {axis, 0};
    const TensorView from = dense(x.data(), Dtype::kF32, dims), to = dense(y.data(), Dtype::kF32, dims);
    measure({name, &kSoftmaxOp, {from}, {to}, &attrs, static_cast<double>(from.element_count()), "G/s"}, options);
  };
  softmax("softmax last 197x197", {197, 197}, 1);
  softmax("softmax last 1000", {1, 1000}, 1);
  softmax("softmax dfl nhwc 8400x4x16", {8400, 4, 16}, 2);
  softmax("softmax dfl nchw 4x16x8400", {4, 16, 8400}, 1);
  const LayerNormAttrs norm = {1, 1e-5f, 0};
  const TensorView from = dense(x.data(), Dtype::kF32, {197, 768}), to = dense(y.data(), Dtype::kF32, {197, 768});
  measure({"layer_norm 197x768", &kLayerNormOp, {from}, {to}, &norm, 197.0 * 768, "G/s"}, options);
  for (const Activation kind : {Activation::kRelu, Activation::kSigmoid, Activation::kSilu, Activation::kGelu,
                                Activation::kTanh, Activation::kExp, Activation::kHardSwish}) {
    const UnaryAttrs attrs = {static_cast<int32_t>(kind), 0, 0};
    const TensorView in = dense(x.data(), Dtype::kF32, {65536}), out = dense(y.data(), Dtype::kF32, {65536});
    measure({std::string("unary ") + name_of(kind), &kUnaryOp, {in}, {out}, &attrs, 65536.0, "G/s"}, options);
  }
}

void bench_moves(const BenchOptions& options) {
  Memory x(3 * 640 * 640), y(3 * 640 * 640);
  const auto transpose = [&](const char* name, Dtype dtype, int rows, int columns) {
    TensorView from = dense(x.data(), dtype, {rows, columns}), to = dense(y.data(), dtype, {rows, columns});
    to.strides[0] = 1, to.strides[1] = rows;
    measure({name, &kCopyOp, {from}, {to}, nullptr, 2.0 * rows * columns * dtype_bytes(dtype), "GB/s"}, options);
  };
  transpose("transpose f32 3x409600", Dtype::kF32, 3, 409600);
  transpose("transpose f32 409600x3", Dtype::kF32, 409600, 3);
  transpose("transpose f32 84x8400", Dtype::kF32, 84, 8400);
  transpose("transpose f32 8400x84", Dtype::kF32, 8400, 84);
  transpose("transpose u8 256x3136", Dtype::kU8, 256, 3136);
  std::vector<int32_t> table(80);
  for (int i = 0; i < 80; ++i) table[static_cast<size_t>(i)] = i / 2;
  for (const Dtype dtype : {Dtype::kU8, Dtype::kF32}) {
    const TensorView index = dense(table.data(), Dtype::kI32, {80});
    measure({std::string("nearest 2x 40x40x128 ") + name_of(dtype),
             &kResizeNearestOp,
             {dense(x.data(), dtype, {1, 40, 40, 128}), index, index},
             {dense(y.data(), dtype, {1, 80, 80, 128})},
             nullptr,
             80.0 * 80 * 128 * dtype_bytes(dtype),
             "GB/s"},
            options);
  }
  for (const Dtype dtype : {Dtype::kU8, Dtype::kF32}) {
    const auto pool = [&](const char* name, const PoolAttrs& attrs, int size, int out, int channels) {
      measure({std::string(name) + " " + name_of(dtype),
               &kPoolOp,
               {dense(x.data(), dtype, {1, size, size, channels})},
               {dense(y.data(), dtype, {1, out, out, channels})},
               &attrs,
               static_cast<double>(out) * out * channels * attrs.kernel_h * attrs.kernel_w,
               "Gtap/s"},
              options);
    };
    pool("max 5x5 20x20x256", {0, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 1}, 20, 20, 256);
    pool("max 3x3/2 112x112x64", {0, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1}, 112, 56, 64);
    pool("global average 7x7x1280", {1, 7, 7, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1}, 7, 1, 1280);
  }
}

bool take_activation(const std::string& name, Activation& act) {
  for (const Activation kind : {Activation::kNone, Activation::kRelu, Activation::kClip, Activation::kSilu}) {
    if (name != name_of(kind)) continue;
    act = kind;
    return true;
  }
  return false;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    if (take_option(count, arguments, i, options)) continue;
    if (std::strcmp(arguments[i], "--act") != 0 || i + 1 == count || !take_activation(arguments[++i], options.act)) {
      std::fprintf(stderr, "usage: bench_f32 [--isa NAME] [--threads N] [--filter TEXT] [--act none|relu|clip|silu]\n");
      std::exit(2);
    }
  }
  return options;
}

void run(const Options& options) {
  const double peak = peak_macs_per_ns(select_roofline(options.isa).fp32_macs, options.threads);
  print_layer_head(options, peak);
  for (const Layer& layer : kLayers) bench_convolution(layer, peak, options);
  bench_matmuls(options);
  bench_lines(options);
  bench_moves(options);
}

}  // namespace
}  // namespace edgekit::bench

int main(int argument_count, char** arguments) {
  edgekit::bench::run(edgekit::bench::parse(argument_count, arguments));
  return 0;
}
