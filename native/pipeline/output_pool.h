// OutputPool: memory for the outputs of inferences. Whoever reads a result holds it; memory that was given back is used
// again, so that a stream whose results are read and dropped allocates nothing.
#ifndef EDGEKIT_PIPELINE_OUTPUT_POOL_H_
#define EDGEKIT_PIPELINE_OUTPUT_POOL_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/status.h"

namespace edgekit {

class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  // Gives its memory back when it ends; keeps the pool alive.
  class Lease {
   public:
    Lease() = default;
    Lease(std::shared_ptr<OutputPool> pool, AlignedBuffer buffer)
        : pool_(std::move(pool)), buffer_(std::move(buffer)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(buffer_, other.buffer_);
      return *this;
    }
    ~Lease() {
      if (pool_ != nullptr) pool_->give_back(std::move(buffer_));
    }
    std::byte* data() const { return buffer_.data(); }

   private:
    std::shared_ptr<OutputPool> pool_;
    AlignedBuffer buffer_;
  };

  // At least size_bytes, aligned to a page; kOutOfMemory when there is not that much.
  Result<Lease> take(size_t size_bytes) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (AlignedBuffer& buffer : free_) {
        if (buffer.size_bytes() < size_bytes) continue;
        std::swap(buffer, free_.back());
        Lease lease(shared_from_this(), std::move(free_.back()));
        free_.pop_back();
        return Result<Lease>(std::move(lease));
      }
    }
    Result<AlignedBuffer> buffer = AlignedBuffer::allocate(size_bytes, "outputs");
    if (!buffer.is_ok()) return buffer.status();
    return Result<Lease>(Lease(shared_from_this(), std::move(buffer.value())));
  }

 private:
  static constexpr size_t kMostFree = 4;  // a reader that kept many results leaves no more than these behind

  void give_back(AlignedBuffer buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.size() < kMostFree) free_.push_back(std::move(buffer));
  }

  std::mutex mutex_;
  std::vector<AlignedBuffer> free_;
};

}  // namespace edgekit

#endif  // EDGEKIT_PIPELINE_OUTPUT_POOL_H_
