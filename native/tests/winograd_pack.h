// Packs conv_q8_winograd's weights as the schema says, for tests and benchmarks.
#ifndef EDGEKIT_TESTS_WINOGRAD_PACK_H_
#define EDGEKIT_TESTS_WINOGRAD_PACK_H_

#include <cstdint>
#include <vector>

namespace edgekit::test {

// weight(output channel, input channel, ky, kx) -> int8.
template <typename Weight>
std::vector<int8_t> pack_winograd(int channels, int out_channels, Weight&& weight) {
  const int panels = (out_channels + 15) / 16, pairs = (channels + 1) / 2;
  std::vector<int8_t> packed;
  for (int row = 0; row < panels * pairs * 9; ++row) {
    for (int lane = 0; lane < 32; ++lane) {
      const int tap = row % 9, ic = row / 9 % pairs * 2 + lane % 2, oc = row / 9 / pairs * 16 + lane / 2;
      packed.push_back(oc < out_channels && ic < channels ? weight(oc, ic, tap / 3, tap % 3) : int8_t{0});
    }
  }
  return packed;
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_WINOGRAD_PACK_H_
