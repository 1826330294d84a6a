#include "kernels/gemm/conv_q8_way.h"

#include "kernels/gemm/conv_q8_bands.h"

namespace edgekit {
namespace {

constexpr int64_t kBlockKib[] = {48, 16, 128, 384};  // the first is about half of the share of a level-2 cache
constexpr int kBlocks = 4;

// What args.way is made of: kernel, then block, then bands, then turned; each counts from 0, what is preferred.
struct Digits {
  int kernel, block, windows, turned;
};

const GemmQ8Kernel& preferred_kernel(const OpArgs& args, Isa isa) {
  const auto& a = args.attrs<ConvQ8Attrs>();
  return select_gemm_q8(isa, args.in(0).dtype, a.nr, a.kg);
}

bool has_bands(OpArgs args, Isa isa) {
  args.way = 0;
  return conv_q8_band_bytes(args, isa) > 0;
}

Digits digits_of(const OpArgs& args, Isa isa) {
  if (args.way == 0) return {};  // nearly always, and this runs with every run
  const int kernels = gemm_q8_peer_count(preferred_kernel(args, isa));
  const int rest = args.way / kernels / kBlocks;
  const int bands = has_bands(args, isa) ? 2 : 1;
  return {args.way % kernels, args.way / kernels % kBlocks, rest % bands, rest / bands};
}

}  // namespace

const GemmQ8Kernel& conv_q8_kernel(const OpArgs& args, Isa isa) {
  const GemmQ8Kernel& preferred = preferred_kernel(args, isa);
  return args.way == 0 ? preferred : gemm_q8_peer(preferred, args.way % gemm_q8_peer_count(preferred));
}

ConvQ8Way conv_q8_way(const OpArgs& args, Isa isa) {
  const Digits digits = digits_of(args, isa);
  return {&conv_q8_kernel(args, isa), kBlockKib[digits.block] * 1024, digits.windows == 0, digits.turned == 1};
}

int conv_q8_ways(const OpArgs& args, int threads, Isa isa) {
  const int kernels = gemm_q8_peer_count(preferred_kernel(args, isa));
  return kernels * kBlocks * (has_bands(args, isa) ? 2 : 1) * (threads > 1 ? 2 : 1);
}

std::string conv_q8_way_name(const OpArgs& args, Isa isa) {
  const Digits digits = digits_of(args, isa);
  std::string name = conv_q8_kernel(args, isa).name;
  if (digits.block != 0) name += " blocks of " + std::to_string(kBlockKib[digits.block]) + " KiB";
  if (digits.windows != 0) name += " whole windows";
  if (digits.turned != 0) name += " turned";
  return name;
}

}  // namespace edgekit
