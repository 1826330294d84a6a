// Times the INT8 convolutions of real networks (layers.inc) through their ops, with the kernels of one instruction
// set: time, GMAC/s and the share of what the cores can do at best.
//
//   bench_q8 [--isa NAME] [--threads N] [--filter TEXT] [--lut] [--add] [--winograd]
//
// --lut, --add: with a table, with a residual.
// --winograd: those layers that conv_q8_winograd can do instead of conv_q8, by it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/layers.h"
#include "kernels/roofline/roofline.h"
#include "tests/q8_pack.h"
#include "tests/winograd_pack.h"

namespace edgekit::bench {
namespace {

struct Options : BenchOptions {
  bool lut = false;
  bool add = false;
  bool winograd = false;
};

// Memory and operands of one layer; random activations and weights, since some CPUs are faster on zeros.
class LayerRun {
 public:
  LayerRun(const Layer& layer, const Options& options) : layer_(layer), packing_(packing_of(options.isa)) {
    const int out = layer.out_size(), depth = layer.depth();
    test::PackShape shape{1,
                          layer.out_channels,
                          layer.kernel,
                          layer.kernel,
                          layer.channels,
                          packing_.q8_nr,
                          packing_.q8_kg,
                          packing_.saturating_pairs};
    shape.taps = layer.channels >= 128;  // as the converter has it
    const int lanes = packing_.q8_nr * packing_.q8_kg;
    const Dtype dtype = packing_.activations_signed ? Dtype::kS8 : Dtype::kU8;
    fill(x_, static_cast<size_t>(layer.size) * layer.size * layer.channels);
    if (layer.depthwise) {
      fill(packed_.w, static_cast<size_t>(depth) * layer.channels);
    } else {
      packed_ = test::pack_conv_q8(shape, [](int, int, int) { return bell_weight(); });
      is_list_ = !packed_.row_group.empty();
    }
    const int packed_groups = static_cast<int>(packed_.w.size()) / lanes;
    fill(lut_, 256);
    y_.resize(static_cast<size_t>(out) * out * layer.out_channels + 128);
    bias_.assign(layer.out_channels, 0);
    scale_.assign(layer.out_channels, 0.005f);
    views_[0] = dense(aligned(x_.data()), dtype, {1, layer.size, layer.size, layer.channels});
    int8_t* w = packed_.w.data();
    views_[1] = layer.depthwise ? dense(w, Dtype::kS8, {depth, layer.channels})
                : is_list_      ? dense(w, Dtype::kS8, {packed_groups, lanes})
                                : dense(w, Dtype::kS8, {1, shape.panels(), shape.depth_groups(), lanes});
    const auto indices = [](std::vector<int32_t>& values) {
      return dense(values.data(), Dtype::kI32, {static_cast<int32_t>(values.size())});
    };
    views_[6] = indices(packed_.row_start);
    views_[7] = indices(packed_.row_group);
    views_[9] = indices(packed_.row_order);
    views_[2] = dense(bias_.data(), Dtype::kI32, {layer.out_channels});
    views_[3] = dense(scale_.data(), Dtype::kF32, {layer.out_channels});
    views_[4] = dense(lut_.data(), dtype, {256});
    views_[5] = dense(aligned(y_.data()), dtype, {1, out, out, layer.out_channels});
    fill(residual_, y_.size());
    views_[8] = views_[5];
    views_[8].data = aligned(residual_.data());
    set_attributes(options);
    if (options.winograd) use_winograd(options);
  }

  double measure_ns(const Options& options) {
    const TensorView* inputs[] = {&views_[0],
                                  &views_[1],
                                  &views_[2],
                                  &views_[3],
                                  &views_[4],
                                  options.add ? &views_[8] : nullptr,
                                  is_list_ ? &views_[6] : nullptr,
                                  is_list_ ? &views_[7] : nullptr,
                                  packed_.row_order.empty() ? nullptr : &views_[9]};
    const TensorView* outputs[] = {&views_[5]};
    if (!w_.empty()) {
      const OpArgs args{inputs, 6, outputs, 1, &winograd_};
      return best_op_ns(layer_.name, kConvQ8WinogradOp, args, options);
    }
    const void* attributes = layer_.depthwise ? static_cast<const void*>(&depthwise_) : &conv_;
    const OpArgs args{inputs, layer_.depthwise ? 6 : 9, outputs, 1, attributes};
    const OpDef& op = layer_.depthwise ? kDepthwiseQ8Op : kConvQ8Op;
    return best_op_ns(layer_.name, op, args, options);
  }

 private:
  template <typename T>
  static void fill(std::vector<T>& bytes, size_t count) {
    bytes.resize(count + 128);
    for (T& byte : bytes) byte = static_cast<T>(std::rand() >> 7);
  }

  // As the engine's arena aligns tensors; `fill` and y_ leave room for it.
  static uint8_t* aligned(uint8_t* bytes) { return bytes + (64 - reinterpret_cast<uintptr_t>(bytes) % 64) % 64; }

  // As trained weights are distributed: about normal, a deviation of a third of the greatest.
  static int8_t bell_weight() {
    int sum = 0;
    for (int i = 0; i < 4; ++i) sum += (std::rand() >> 7) % 139 - 69;
    return static_cast<int8_t>(std::clamp(sum / 2, -127, 127));
  }

  void set_attributes(const Options& options) {
    const int pad = layer_.pad();
    conv_ = {};
    conv_.groups = 1;
    conv_.kernel_h = conv_.kernel_w = depthwise_.kernel_h = depthwise_.kernel_w = layer_.kernel;
    conv_.stride_h = conv_.stride_w = depthwise_.stride_h = depthwise_.stride_w = layer_.stride;
    conv_.dilation_h = conv_.dilation_w = depthwise_.dilation_h = depthwise_.dilation_w = 1;
    conv_.pad_top = conv_.pad_left = depthwise_.pad_top = depthwise_.pad_left = pad;
    conv_.nr = packing_.q8_nr;
    conv_.kg = packing_.q8_kg;
    finish_attributes(conv_, options);
    finish_attributes(depthwise_, options);
  }

  template <typename Attrs>
  void finish_attributes(Attrs& attrs, const Options& options) {
    const int low = packing_.activations_signed ? -128 : 0;
    attrs.x_zero = attrs.y_zero = attrs.y_min = low;  // as behind a ReLU
    attrs.y_max = low + 255;
    attrs.fuse_lut = options.lut;
    attrs.fuse_add = options.add;
    attrs.add_lhs_zero = attrs.add_rhs_zero = attrs.add_zero = attrs.add_min = low;
    attrs.add_lhs_scale = 0.6f;
    attrs.add_rhs_scale = 0.7f;
    attrs.add_max = low + 255;
  }

  void use_winograd(const Options& options) {
    w_ = test::pack_winograd(layer_.channels, layer_.out_channels, [](int, int, int, int) { return bell_weight(); });
    views_[1] = dense(w_.data(), Dtype::kS8, {(layer_.out_channels + 15) / 16, (layer_.channels + 1) / 2, 9, 32});
    winograd_ = {};
    winograd_.pad_top = winograd_.pad_left = 1;
    finish_attributes(winograd_, options);
  }

  Layer layer_;
  const IsaPacking& packing_;
  std::vector<uint8_t> x_, y_, lut_, residual_;
  test::PackedWeights packed_;
  bool is_list_ = false;
  std::vector<int32_t> bias_;
  std::vector<float> scale_;
  TensorView views_[10];
  ConvQ8Attrs conv_{};
  DepthwiseQ8Attrs depthwise_{};
  std::vector<int8_t> w_;  // weights of conv_q8_winograd; empty: by the usual op
  ConvQ8WinogradAttrs winograd_{};
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    if (take_option(count, arguments, i, options)) continue;
    if (std::strcmp(arguments[i], "--lut") == 0) {
      options.lut = true;
    } else if (std::strcmp(arguments[i], "--add") == 0) {
      options.add = true;
    } else if (std::strcmp(arguments[i], "--winograd") == 0) {
      options.winograd = true;
    } else {
      std::fprintf(stderr, "usage: bench_q8 [--isa NAME] [--threads N] [--filter TEXT] [--lut] [--add] [--winograd]\n");
      std::exit(2);
    }
  }
  return options;
}

void run(const Options& options) {
  const double peak = peak_macs_per_ns(select_roofline(options.isa).int8_macs, options.threads);
  print_layer_head(options, peak);
  for (const Layer& layer : kLayers) {
    if (std::strstr(layer.name, options.filter.c_str()) == nullptr) continue;
    if (options.winograd && (layer.depthwise || layer.kernel != 3 || layer.stride != 1)) continue;
    print_layer(layer, LayerRun(layer, options).measure_ns(options), peak);
  }
}

}  // namespace
}  // namespace edgekit::bench

int main(int argument_count, char** arguments) {
  edgekit::bench::run(edgekit::bench::parse(argument_count, arguments));
  return 0;
}
