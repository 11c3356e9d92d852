#include "flux/rpc/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

namespace flux {
namespace {

// Rounded up, so that messages of nearly the same size share a buffer.
size_t rounded(uint64_t bytes) {
  constexpr uint64_t kSmall = 4096;
  if (bytes <= kSmall) return kSmall;
  const uint64_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct BufferPool::Shelf {
  struct Item {
    std::unique_ptr<PayloadMemory> memory;
    size_t capacity = 0;
  };
  std::mutex mutex;
  std::vector<Item> items;
  uint64_t bytes = 0;
  uint64_t allocated = 0;
  size_t buffers_max;
  uint64_t bytes_max;

  // The smallest that is large enough, but not much too large.
  Item take(uint64_t need) {
    const std::lock_guard lock(mutex);
    size_t best = items.size();
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].capacity < need) continue;
      if (best == items.size() || items[i].capacity < items[best].capacity) best = i;
    }
    if (best == items.size()) {
      ++allocated;
      return {};
    }
    Item item = std::move(items[best]);
    items.erase(items.begin() + static_cast<ptrdiff_t>(best));
    bytes -= item.capacity;
    return item;
  }

  void give_back(Item item) {
    const std::lock_guard lock(mutex);
    if (item.capacity > bytes_max) return;
    bytes += item.capacity;
    items.push_back(std::move(item));
    while (items.size() > buffers_max || bytes > bytes_max) {  // the oldest goes
      bytes -= items.front().capacity;
      items.erase(items.begin());
    }
  }
};

BufferPool::BufferPool(size_t buffers_max, uint64_t bytes_max) : shelf_(std::make_shared<Shelf>()) {
  shelf_->buffers_max = buffers_max;
  shelf_->bytes_max = bytes_max;
}

std::shared_ptr<PayloadMemory> BufferPool::take(uint32_t control_bytes, uint64_t payload_bytes) {
  Shelf::Item item = shelf_->take(payload_bytes);
  if (!item.memory) {
    item.memory = std::make_unique<PayloadMemory>();
    item.capacity = rounded(payload_bytes);
    item.memory->payload.resize_discard(item.capacity);
  }
  item.memory->control.resize(control_bytes);
  item.memory->payload.resize_discard(payload_bytes);
  PayloadMemory* memory = item.memory.release();
  return {memory, [shelf = shelf_, capacity = item.capacity](PayloadMemory* back) {
            shelf->give_back({std::unique_ptr<PayloadMemory>(back), capacity});
          }};
}

uint64_t BufferPool::allocated() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->allocated;
}

}  // namespace flux
