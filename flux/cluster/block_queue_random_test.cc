// BlockQueue under random events, against a plain picture of workers, shards and saves.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/cluster/block_queue.h"

namespace flux {
namespace {

constexpr BlockId kSection{4, 0, 1, 0};
constexpr uint32_t kAloneMax = 3;

struct Rates {
  double kill = 0, leave = 0, lost_hint = 0, slow = 0, restore = 0, give_back = 0;
};

// A lease that a worker got, as long as it lives. It is over when the queue was told that every
// shard has what it was for; the worker may train on.
struct Held {
  uint32_t block = 0;
  uint32_t lent = 0;  // batches
  uint32_t left = 0;  // of them, to be trained
  uint32_t due = 0;   // of them, those that the lease ends with
  bool alone = false;
  bool over = false;
};

class World {
 public:
  World(uint64_t seed, Rates rates, double poison_share) : random_(seed), rates_(rates) {
    batches_.resize(1 + random_.below(25));
    for (uint8_t& n : batches_) n = static_cast<uint8_t>(1 + random_.below(32));
    std::vector<uint32_t> order(batches_.size());
    std::iota(order.begin(), order.end(), 0U);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    for (uint32_t b = 0; b < batches_.size(); ++b)
      for (uint8_t i = 0; i < batches_[b]; ++i)
        if (random_.chance(poison_share)) poison_.insert({b, i});
    have_.resize(batches_.size());
    told_.resize(batches_.size());
    durable_.resize(batches_.size());
    holder_.resize(batches_.size());
    hands_.resize(1 + random_.below(5));
    ids_.resize(hands_.size());
    for (WorkerId& id : ids_) id = ++last_id_;
    queue_.emplace(kSection, batches_, order);
  }

  void run() {
    for (int step = 0;; ++step) {
      ASSERT_LT(step, 400000) << "it does not end";
      now_ += static_cast<TimeNs>(random_.below(kSecond));
      act(random_.below(hands_.size()));
      if (testing::Test::HasFatalFailure()) return;
      check_states();
      if (!queue_->all_applied()) continue;
      // Hints say that it is over; the shards decide.
      recompute(false);
      if (queue_->all_applied()) break;
    }
    for (size_t b = 0; b < batches_.size(); ++b) ASSERT_EQ(have_[b], batch_mask(batches_[b]));
  }
  const std::set<std::pair<uint32_t, uint8_t>>& poison() const { return poison_; }
  const std::set<std::pair<uint32_t, uint8_t>>& condemned() const { return condemned_; }
  uint64_t kills() const { return kills_; }

 private:
  void act(size_t w) {
    if (random_.chance(0.5)) lease(w);
    if (random_.chance(rates_.leave)) gone(w, false);
    if (random_.chance(rates_.kill)) gone(w, true);
    if (random_.chance(rates_.slow)) now_ += 40 * kSecond;
    if (random_.chance(0.2)) expire();
    if (random_.chance(0.05)) recompute(false);
    if (random_.chance(rates_.restore)) restore();
    if (random_.chance(0.1)) save();
    give_verdicts();
    if (!hands_[w].empty()) train(w);
  }
  void lease(size_t w) {
    BlockLease lease;
    if (!queue_->lease(ids_[w], now_, &lease)) return;
    const uint32_t b = lease.id.block;
    ASSERT_FALSE(holder_[b]) << "block " << b << " is leased already";
    ASSERT_EQ(lease.batches, batches_[b]);
    const uint32_t left = batch_mask(lease.batches) & ~lease.skip_mask;
    ASSERT_NE(left, 0U) << "a lease of nothing";
    const bool alone = deaths_[b] >= 2;
    if (alone) {
      ASSERT_EQ(left & (left - 1), 0U) << "a suspect is leased batch by batch";
      ASSERT_EQ(left & told_[b], 0U) << "what every shard has is leased alone";
    } else {
      ASSERT_EQ(lease.skip_mask, told_[b]) << "skips what every shard has";
    }
    for (const Held& held : hands_[w]) {
      if (held.over || held.block == b) continue;
      ASSERT_FALSE(alone) << "a suspect beside something";
      ASSERT_FALSE(held.alone && holder_[held.block] == ids_[w]) << "something beside a suspect";
    }
    holder_[b] = ids_[w];
    std::erase_if(hands_[w], [b](const Held& held) { return held.block == b; });
    hands_[w].push_back({b, left, left, left, alone, false});
  }
  // Trains the next batch of a block in hand.
  void train(size_t w) {
    Held& held = hands_[w][random_.below(hands_[w].size())];
    const uint32_t b = held.block;
    if (random_.chance(rates_.give_back)) {
      queue_->release_block(ids_[w], {4, 0, 1, b});
      if (holder_[b] == ids_[w]) holder_[b].reset();
      std::erase_if(hands_[w], [b](const Held& other) { return other.block == b; });
      return;
    }
    if (held.left == 0) return;
    const auto batch = static_cast<uint8_t>(std::countr_zero(held.left));
    if (poison_.contains({b, batch})) return gone(w, true);
    held.left &= held.left - 1;
    have_[b] |= 1U << batch;
    if (random_.chance(rates_.lost_hint)) return;  // then the lease runs out, or shards are asked
    queue_->batch_applied({{4, 0, 1, b}, batch, batches_[b]}, now_);
    told_[b] |= 1U << batch;
    sweep();
  }
  // What the queue was told ends leases.
  void sweep() {
    for (size_t w = 0; w < hands_.size(); ++w)
      for (Held& held : hands_[w]) {
        if (held.over || (held.due & ~told_[held.block]) != 0) continue;
        held.over = true;
        if (holder_[held.block] == ids_[w]) holder_[held.block].reset();
      }
  }
  void gone(size_t w, bool died) {
    kills_ += died ? 1 : 0;
    std::erase_if(hands_[w], [](const Held& held) { return held.over; });
    for (const Held& held : hands_[w]) {
      if (holder_[held.block] == ids_[w]) holder_[held.block].reset();
      if (!died) continue;
      ++deaths_[held.block];
      if (held.alone && hands_[w].size() == 1)
        ++alone_deaths_[{held.block, static_cast<uint8_t>(std::countr_zero(held.lent))}];
    }
    hands_[w].clear();
    queue_->release(ids_[w], died);
    ids_[w] = ++last_id_;
  }
  void expire() {
    for (const BlockLease& lease : queue_->expire(now_)) {
      ASSERT_EQ(holder_[lease.id.block], lease.worker);
      holder_[lease.id.block].reset();
    }
    const auto next = queue_->next_time();
    ASSERT_TRUE(next.has_value() || queue_->pending() == 0);
    ASSERT_GT(next.value_or(now_ + 1), now_) << "what is due was taken back";
  }
  void recompute(bool safe) {
    queue_->recompute(have_, safe);
    for (auto& hands : hands_)
      for (Held& held : hands) held.due &= ~(told_[held.block] & ~have_[held.block]);
    told_ = have_;
    sweep();
  }
  void restore() {
    have_ = durable_;
    saving_.reset();
    recompute(true);
  }
  void save() {
    if (!saving_) {
      saving_ = {queue_->mark_point(), have_};
      return;
    }
    durable_ = saving_->second;
    queue_->applied_before_are_safe(saving_->first);
    saving_.reset();
  }
  void give_verdicts() {
    for (const BatchId& id : queue_->take_poisoned()) waiting_.push_back(id);
    if (waiting_.empty() || !random_.chance(0.3)) return;
    const BatchId id = waiting_.back();
    waiting_.pop_back();
    const std::pair<uint32_t, uint8_t> key{id.block.block, id.batch};
    ASSERT_GE((alone_deaths_[key]), kAloneMax) << to_string(id);
    condemned_.insert(key);
    have_[key.first] |= 1U << key.second;
    queue_->settled(id);
    told_[key.first] |= 1U << key.second;
    sweep();
  }
  void check_states() {
    size_t count[5] = {};
    for (uint32_t b = 0; b < batches_.size(); ++b) {
      ++count[static_cast<size_t>(queue_->state(b))];
      ASSERT_EQ(queue_->state(b) == BlockState::kPending, holder_[b].has_value()) << b;
      const uint32_t kept = durable_[b] & have_[b];
      ASSERT_TRUE(queue_->state(b) != BlockState::kDone || kept == batch_mask(batches_[b])) << b;
    }
    ASSERT_EQ(queue_->todo(), count[0]);
    ASSERT_EQ(queue_->pending(), count[1]);
    ASSERT_EQ(queue_->applied(), count[2]);
    ASSERT_EQ(queue_->done(), count[3]);
    ASSERT_EQ(queue_->aside(), count[4]);
    size_t held = 0;
    for (const WorkerId id : ids_) held += queue_->held_by(id);
    ASSERT_EQ(held, count[1]);
  }

  Random random_;
  Rates rates_;
  std::vector<uint8_t> batches_;
  std::set<std::pair<uint32_t, uint8_t>> poison_, condemned_;
  std::optional<BlockQueue> queue_;
  TimeNs now_ = 0;
  // By block: what every shard has, what the queue was told of it, what files have.
  std::vector<uint32_t> have_, told_, durable_;
  std::optional<std::pair<uint64_t, std::vector<uint32_t>>> saving_;
  std::vector<std::vector<Held>> hands_;  // by worker: what it works on
  std::vector<WorkerId> ids_;
  std::vector<std::optional<WorkerId>> holder_;  // by block: whose lease has not run out
  std::map<uint32_t, uint32_t> deaths_;
  std::map<std::pair<uint32_t, uint8_t>, uint32_t> alone_deaths_;
  std::vector<BatchId> waiting_;
  WorkerId last_id_ = 0;
  uint64_t kills_ = 0;
};

TEST(BlockQueueRandom, RandomKillsCondemnNothing) {
  uint64_t kills = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    World world(seed, {0.02, 0.02, 0.02, 0.02, 0, 0.02}, 0);
    world.run();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    EXPECT_EQ(world.condemned().size(), 0U) << "seed " << seed;
    kills += world.kills();
  }
  EXPECT_GT(kills, 1000U);
}

TEST(BlockQueueRandom, PoisonAndNothingElseIsCondemned) {
  size_t poisons = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    World world(seed, {0.005, 0.02, 0.02, 0.02, 0, 0.02}, 0.01);
    world.run();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    EXPECT_EQ(world.condemned(), world.poison()) << "seed " << seed;
    poisons += world.poison().size();
  }
  EXPECT_GT(poisons, 100U);
}

TEST(BlockQueueRandom, EndsWhateverIsLost) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    World world(seed, {0.03, 0.03, 0.1, 0.05, 0.002, 0.03}, 0.005);
    world.run();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    EXPECT_TRUE(std::includes(world.condemned().begin(), world.condemned().end(),
                              world.poison().begin(), world.poison().end()))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace flux
