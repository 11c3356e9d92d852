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
  // At most `free_max` wait to be used again.
  ReusePool(std::function<std::unique_ptr<T>()> make, size_t free_max)
      : make_(std::move(make)), free_max_(free_max) {}

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
              if (pool->free_.size() < pool->free_max_) pool->free_.push_back(std::move(back));
            }};
  }

 private:
  const std::function<std::unique_ptr<T>()> make_;
  const size_t free_max_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace flux
