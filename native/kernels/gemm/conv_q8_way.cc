#include "kernels/gemm/conv_q8_way.h"

#include "kernels/gemm/conv_q8_bands.h"
#include "kernels/gemm/conv_q8_words.h"

namespace edgekit {
namespace {

constexpr int64_t kBlockKib[] = {48, 16, 128, 384};  // the first is about half of the share of a level-2 cache
constexpr int kBlocks = 4;

// What args.way is made of: kernel, then block, then bands, then turned; each counts from 0, what is preferred.
struct Digits {
  int kernel, block, windows, turned;
};

// Only some kernels know lists of rows.
const GemmQ8Kernel& preferred_kernel(const OpArgs& args, Isa isa) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  const GemmQ8Kernel& kernel = select_gemm_q8(isa, args.in(0).dtype, a.nr, a.kg);
  const bool is_list = args.input_count > 7 && args.inputs[7] != nullptr;
  if (!is_list || kernel.skips == DepthSkips::kParts) return kernel;
  return select_gemm_q8(Isa::kScalar, args.in(0).dtype, a.nr, a.kg);
}

bool has_bands(OpArgs args, Isa isa) {
  args.way = 0;
  return may_have_conv_q8_bands(args, isa);
}

// Products of words have a kernel and blocks of their own.
bool has_words(OpArgs args, Isa isa) {
  args.way = 0;
  return conv_q8_word_bytes(args, isa) > 0;
}

// How many values each digit has.
Digits counts_of(const OpArgs& args, int threads, Isa isa) {
  const int turns = threads > 1 ? 2 : 1;
  if (has_words(args, isa)) return {1, 1, 1, turns};
  return {gemm_q8_peer_count(preferred_kernel(args, isa)), kBlocks, has_bands(args, isa) ? 2 : 1, turns};
}

Digits digits_of(const OpArgs& args, Isa isa) {
  if (args.way == 0) return {};  // nearly always, and this runs with every run
  const Digits count = counts_of(args, 2, isa);
  const int block = args.way / count.kernel, windows = block / count.block, turned = windows / count.windows;
  return {args.way % count.kernel, block % count.block, windows % count.windows, turned};
}

}  // namespace

const GemmQ8Kernel& conv_q8_kernel(const OpArgs& args, Isa isa) {
  return gemm_q8_peer(preferred_kernel(args, isa), digits_of(args, isa).kernel);
}

ConvQ8Way conv_q8_way(const OpArgs& args, Isa isa) {
  const Digits digits = digits_of(args, isa);
  return {&gemm_q8_peer(preferred_kernel(args, isa), digits.kernel), kBlockKib[digits.block] * 1024,
          digits.windows == 0, digits.turned == 1};
}

int conv_q8_ways(const OpArgs& args, int threads, Isa isa) {
  const Digits count = counts_of(args, threads, isa);
  return count.kernel * count.block * count.windows * count.turned;
}

std::string conv_q8_way_name(const OpArgs& args, Isa isa) {
  const Digits digits = digits_of(args, isa);
  std::string name = has_words(args, isa) ? word_kernel(isa)->name : conv_q8_kernel(args, isa).name;
  if (digits.block != 0) name += " blocks of " + std::to_string(kBlockKib[digits.block]) + " KiB";
  if (digits.windows != 0) name += " whole windows";
  if (digits.turned != 0) name += " turned";
  return name;
}

}  // namespace edgekit
