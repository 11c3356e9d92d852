#include "flux/server/receipts.h"

#include <utility>

#include "flux/base/hash.h"

namespace flux {
namespace {

Status void_status() {
  return Status(Code::kStale, "this receipt is void; push again");
}

// Not 0, and far from the end of the numbers.
uint64_t base_of(uint64_t seed) {
  return (mix64(seed) & ~(3ULL << 62)) | (1ULL << 62);
}

}  // namespace

Receipts::Receipts(uint64_t seed) : base_(base_of(seed)), last_(base_) {}

void Receipts::arrived(const ReceiptPtr& receipt) {
  if (receipt->waits_.fetch_sub(1, std::memory_order_acq_rel) == 1) settle(receipt, Status::ok());
}

void Receipts::give_up(const ReceiptPtr& receipt) {
  settle(receipt, void_status());
}

void Receipts::settle(const ReceiptPtr& receipt, const Status& how) {
  std::vector<std::function<void(const Status&)>> asking;
  uint64_t id = 0;
  {
    const std::lock_guard lock(receipt->mutex_);
    if (receipt->settled_) return;
    receipt->settled_ = true;
    receipt->how_ = how;
    asking.swap(receipt->asking_);
    id = receipt->id_;
    if (id != 0) {
      Stripe& part = stripe(id);
      const std::lock_guard part_lock(part.mutex);
      part.waiting.erase(id);
      if (!how.is_ok()) part.voids.insert(id);
      while (part.voids.size() > kVoidMax) {
        part.void_below = *part.voids.begin() + 1;
        part.voids.erase(part.voids.begin());
      }
    }
  }
  for (const auto& tell : asking) tell(how);
}

uint64_t Receipts::number(const ReceiptPtr& receipt) {
  const std::lock_guard lock(receipt->mutex_);
  if (receipt->settled_ && receipt->how_.is_ok()) return 0;
  if (receipt->id_ != 0) return receipt->id_;
  receipt->id_ = last_.fetch_add(1, std::memory_order_relaxed) + 1;
  Stripe& part = stripe(receipt->id_);
  const std::lock_guard part_lock(part.mutex);
  if (receipt->settled_)
    part.voids.insert(receipt->id_);
  else
    part.waiting.emplace(receipt->id_, receipt);
  return receipt->id_;
}

void Receipts::when_settled(const ReceiptPtr& receipt, std::function<void(const Status&)> tell) {
  Status how;
  {
    const std::lock_guard lock(receipt->mutex_);
    if (!receipt->settled_) {
      receipt->asking_.push_back(std::move(tell));
      return;
    }
    how = receipt->how_;
  }
  tell(how);
}

void Receipts::confirm(uint64_t id, std::function<void(const Status&)> tell) {
  if (id == 0) return tell(Status::ok());
  if (id <= base_ || id > last_.load(std::memory_order_relaxed)) return tell(void_status());
  ReceiptPtr receipt;
  bool is_void = false;
  {
    Stripe& part = stripe(id);
    const std::lock_guard lock(part.mutex);
    const auto at = part.waiting.find(id);
    if (at != part.waiting.end()) receipt = at->second;
    is_void = id < part.void_below || part.voids.contains(id);
  }
  if (receipt) return when_settled(receipt, std::move(tell));
  tell(is_void ? void_status() : Status::ok());
}

void Receipts::give_up_all() {
  std::vector<ReceiptPtr> all;
  for (Stripe& part : stripes_) {
    const std::lock_guard lock(part.mutex);
    for (const auto& [id, receipt] : part.waiting) all.push_back(receipt);
  }
  for (const ReceiptPtr& receipt : all) give_up(receipt);
}

bool Receipts::is_settled(const ReceiptPtr& receipt) {
  const std::lock_guard lock(receipt->mutex_);
  return receipt->settled_;
}

size_t Receipts::waiting() const {
  size_t sum = 0;
  for (const Stripe& part : stripes_) {
    const std::lock_guard lock(part.mutex);
    sum += part.waiting.size();
  }
  return sum;
}

}  // namespace flux
