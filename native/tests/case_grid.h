// Grids of cases that are too many for every run of the tests: a sample of them by default. EDGEKIT_CASE_STEP=N in the
// environment takes one in N, 1 all of them.
#ifndef EDGEKIT_TESTS_CASE_GRID_H_
#define EDGEKIT_TESTS_CASE_GRID_H_

#include <cstdint>
#include <cstdlib>

namespace edgekit::test {

// Takes a case's number apart, the coordinates of one that was drawn first changing fastest.
class GridCase {
 public:
  explicit GridCase(int64_t number) : number_(static_cast<uint64_t>(number)), left_(number) {}

  // The next coordinate, in [least, most].
  int in(int least, int most) {
    const int64_t count = most - least + 1;
    const int64_t at = left_ % count;
    left_ /= count;
    return least + static_cast<int>(at);
  }
  bool is_past_the_end() const { return left_ > 0; }

  // What is not worth an axis of its own: in [0, count), another sequence for each `salt`.
  int any(int count, uint64_t salt) const {
    const uint64_t mixed = (number_ + salt * 0x632BE59BD9B4E019u + 1) * 0x9E3779B97F4A7C15u;
    return static_cast<int>((mixed >> 33) % static_cast<uint64_t>(count));
  }
  uint64_t seed() const { return number_ + 1; }

 private:
  uint64_t number_;
  int64_t left_;
};

// Calls body(GridCase&) on one case in `step`: a prime, so that a sample takes all values of an axis. The body returns
// false for a case past the end.
template <typename Body>
void for_each_case(int64_t step, Body&& body) {
  const char* asked = std::getenv("EDGEKIT_CASE_STEP");
  if (asked != nullptr && std::atoll(asked) > 0) step = std::atoll(asked);
  for (int64_t number = 0;; number += step) {
    GridCase grid(number);
    if (!body(grid)) return;
  }
}

}  // namespace edgekit::test

#endif  // EDGEKIT_TESTS_CASE_GRID_H_
