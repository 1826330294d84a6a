// Packs conv_q8_winograd's weights as the schema says, for tests and benchmarks.
#ifndef EDGEKIT_TESTS_WINOGRAD_PACK_H_
#define EDGEKIT_TESTS_WINOGRAD_PACK_H_

#include <cstdint>
#include <vector>

namespace edgekit::test {

// One of the 36 values of G g G' of a channel's 3x3 weights g.
template <typename Weight>
int winograd_weight(int position, Weight&& weight) {
  constexpr int kG[6][3] = {{6, 0, 0}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 6}};
  int sum = 0;
  for (int ky = 0; ky < 3; ++ky) {
    for (int kx = 0; kx < 3; ++kx) sum += kG[position / 6][ky] * kG[position % 6][kx] * weight(ky, kx);
  }
  return sum;
}

// weight(output channel, input channel, ky, kx) -> int8.
template <typename Weight>
std::vector<int32_t> pack_winograd(int channels, int out_channels, Weight&& weight) {
  const int panels = (out_channels + 15) / 16, pairs = (channels + 1) / 2;
  std::vector<int32_t> packed;
  for (int panel = 0; panel < panels; ++panel) {
    for (int position = 0; position < 36; ++position) {
      for (int word = 0; word < pairs * 16; ++word) {
        const int oc = panel * 16 + word % 16;
        const auto value = [&](int ic) {
          if (oc >= out_channels || ic >= channels) return 0;
          return winograd_weight(position, [&](int ky, int kx) { return weight(oc, ic, ky, kx); });
        };
        const int ic = word / 16 * 2;
        const auto low = static_cast<uint16_t>(value(ic)), high = static_cast<uint16_t>(value(ic + 1));
        packed.push_back(static_cast<int32_t>(static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16));
      }
    }
  }
  return packed;
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_WINOGRAD_PACK_H_
