// Pairs of weights whose products fit 16 bits, and how the bytes of a window are put in such pairs.
#ifndef EDGEKIT_TESTS_SAFE_PAIRS_H_
#define EDGEKIT_TESTS_SAFE_PAIRS_H_

#include <cstdint>
#include <vector>

namespace edgekit::test {

// What of the weights of a pair does not fit the bound on one: taken from the second, 0 if all fits.
inline int pair_excess(int first, int second) {
  if (first > 0 && second > 0 && first + second > 128) return first + second - 128;
  if (first < 0 && second < 0 && first + second < -128) return first + second + 128;
  return 0;
}

using Lanes = std::vector<int8_t>;  // of a depth group

// Pairs of the bytes of a window of four depth groups, so that no pair saturates; 0 pairs: there are no such.
class SafePairs {
 public:
  explicit SafePairs(const Lanes* window) {
    for (int a = 0; a < 16; ++a) {
      for (int b = 0; b < 16; ++b) is_safe_[a][b] = a != b && is_safe_pair(window, a, b);
    }
    if (!match(0)) bytes_.clear();
  }

  // Eight pairs, one behind the other.
  const std::vector<int>& bytes() const { return bytes_; }

 private:
  static bool is_safe_pair(const Lanes* window, int a, int b) {
    for (size_t column = 0; column < window[0].size() / 4; ++column) {
      const auto weight = [&](int byte) { return window[byte / 4][4 * column + static_cast<size_t>(byte % 4)]; };
      if (pair_excess(weight(a), weight(b)) != 0) return false;
    }
    return true;
  }

  int partners(int a) const {
    int count = 0;
    for (int b = 0; b < 16; ++b) count += !is_taken_[b] && is_safe_[a][b];
    return count;
  }

  // Tries the partners of the byte that has the fewest.
  bool match(int taken) {
    if (taken == 16) return true;
    int a = -1;
    for (int i = 0; i < 16; ++i) {
      if (!is_taken_[i] && (a < 0 || partners(i) < partners(a))) a = i;
    }
    is_taken_[a] = true;
    for (int b = 0; b < 16; ++b) {
      if (is_taken_[b] || !is_safe_[a][b]) continue;
      is_taken_[b] = true;
      bytes_.insert(bytes_.end(), {a, b});
      if (match(taken + 2)) return true;
      bytes_.resize(bytes_.size() - 2);
      is_taken_[b] = false;
    }
    is_taken_[a] = false;
    return false;
  }

  bool is_safe_[16][16], is_taken_[16] = {};
  std::vector<int> bytes_;
};

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_SAFE_PAIRS_H_
