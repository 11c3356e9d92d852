// ReusePool: objects that are done with, to be filled again: fresh pages of memory cost as much as
// reading.
//
// Threads: any. Ownership: what is taken comes back by itself, also after the pool's owner is gone.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace flux {

template <typename T>
class ReusePool : public std::enable_shared_from_this<ReusePool<T>> {
 public:
  explicit ReusePool(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  // What is in it is of its last use.
  std::shared_ptr<T> take() {
    std::unique_ptr<T> one;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        one = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (one == nullptr) one = make_();
    return {one.release(), [pool = this->shared_from_this()](T* used) {
              std::unique_ptr<T> back(used);
              const std::lock_guard lock(pool->mutex_);
              if (pool->free_.size() < kFreeMax) pool->free_.push_back(std::move(back));
            }};
  }

 private:
  static constexpr size_t kFreeMax = 4;
  const std::function<std::unique_ptr<T>()> make_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace flux
