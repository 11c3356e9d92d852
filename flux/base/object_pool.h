// ObjectPool<T>: objects that are used again, so that a request allocates little. take() gives one
// that is free or makes one; it comes back when its last owner lets go, also after the pool itself
// is gone. An object comes back as it was left: the taker overwrites what it needs.
// Threads: any. Keeps at most `kept` free objects; nothing fails.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace flux {

template <typename T>
class ObjectPool {
 public:
  explicit ObjectPool(size_t kept = 32) : state_(std::make_shared<State>()) { state_->kept = kept; }

  std::shared_ptr<T> take() {
    std::unique_ptr<T> object;
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->free.empty()) {
        object = std::move(state_->free.back());
        state_->free.pop_back();
      }
    }
    if (!object) object = std::make_unique<T>();
    return {object.release(), [state = state_](T* raw) {
              std::unique_ptr<T> back(raw);
              const std::lock_guard lock(state->mutex);
              if (state->free.size() < state->kept) state->free.push_back(std::move(back));
            }};
  }

 private:
  struct State {
    std::mutex mutex;
    size_t kept = 0;
    std::vector<std::unique_ptr<T>> free;
  };
  std::shared_ptr<State> state_;
};

}  // namespace flux
