// How an op lays out the scratch memory of a worker.
#ifndef EDGEKIT_KERNELS_CARVER_H_
#define EDGEKIT_KERNELS_CARVER_H_

#include <cstddef>
#include <cstdint>

namespace edgekit {

// Hands out parts of scratch memory, each on a cache line of its own, or with a null base counts how much they need.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <typename T>
  T* take(int64_t count) {
    const size_t begin = used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + begin);
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

}  // namespace edgekit

#endif  // EDGEKIT_KERNELS_CARVER_H_
