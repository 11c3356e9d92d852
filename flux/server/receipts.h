// Receipts: the second acknowledgements that a server owes.
//
// A receipt waits for forwards; it is settled once: ok when all of them have arrived, void (kStale)
// when one of them was given up. Only receipts that are not settled are kept, and the latest void
// ones: every other number that was given out means "replicated". Numbers start at a random base,
// so that those of another life of the server are unknown here.
// Threads: any; no lock is held while somebody is told. Bounded: receipts by the forwards in
// flight, void ones by kVoidMax. Failure: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "flux/base/status.h"

namespace flux {

class Receipt {
 public:
  // Another thing to wait for. Only while something else is still waited for.
  void wait_more() { waits_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend class Receipts;
  std::atomic<uint32_t> waits_{1};  // one is its maker's, until everything is added
  std::mutex mutex_;
  bool settled_ = false;  // guarded by mutex_, as is the rest
  Status how_;
  uint64_t id_ = 0;
  std::vector<std::function<void(const Status&)>> asking_;
};
using ReceiptPtr = std::shared_ptr<Receipt>;

class Receipts {
 public:
  static constexpr size_t kVoidMax = 1024;  // remembered in each stripe

  // `seed` is random for each life of a server.
  explicit Receipts(uint64_t seed);

  // Waits for its maker; arrived() says that everything is added.
  ReceiptPtr make() { return std::make_shared<Receipt>(); }
  void arrived(const ReceiptPtr& receipt);
  void give_up(const ReceiptPtr& receipt);
  // A number to ask with, 0 if it is settled and ok.
  uint64_t number(const ReceiptPtr& receipt);
  // Tells once it is settled, perhaps inside the call.
  void when_settled(const ReceiptPtr& receipt, std::function<void(const Status&)> tell);
  // The same for who knows the number.
  void confirm(uint64_t id, std::function<void(const Status&)> tell);
  // Makes everything void; for a server that ends.
  void give_up_all();
  static bool is_settled(const ReceiptPtr& receipt);
  size_t waiting() const;

 private:
  static constexpr size_t kStripes = 16;
  struct Stripe {
    mutable std::mutex mutex;
    std::unordered_map<uint64_t, ReceiptPtr> waiting;
    std::set<uint64_t> voids;
    uint64_t void_below = 0;  // numbers that are forgotten
  };
  Stripe& stripe(uint64_t id) { return stripes_[id % kStripes]; }
  void settle(const ReceiptPtr& receipt, const Status& how);

  const uint64_t base_;
  std::atomic<uint64_t> last_;
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace flux
