// The reservoir against what DESIGN says of sync steps: who is waited for, who is answered what.
#include "flux/protocol/sync_reservoir.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

constexpr uint64_t kLife = 7, kGeometry = 9;
constexpr ShardEpoch kEpoch{1, 1};

BatchId batch(uint32_t block, uint8_t n = 0) {
  return {{0, 0, 0, block}, n, 4};
}

// Batch `n` of blocks 0..members-1.
SyncStep step_of(uint32_t members, uint64_t round = 1, uint8_t n = 0) {
  SyncStep step{round, n, {}, 0};
  for (uint32_t m = 0; m < members; ++m) {
    step.ids.push_back(batch(m, n));
    step.examples += 10 * (m + 1);
  }
  return step;
}

// A shard without rows: what is poured is written down and committed.
class Shard {
 public:
  Shard() { EXPECT_TRUE(replica.open_pass(0, kGeometry).is_ok()); }

  // The answer if there is one at once; `who` names the push.
  std::optional<Answer> push(int who, const SyncStep& step, uint32_t block) {
    PushClaim claim{kLife, kGeometry, {batch(block, static_cast<uint8_t>(step.step))}};
    return push(who, step, claim, kEpoch);
  }
  std::optional<Answer> push(int who, const SyncStep& step, const PushClaim& claim,
                             ShardEpoch epoch) {
    const uint64_t examples = claim.ids.empty() ? 0 : 10 * (claim.ids[0].block.block + 1);
    auto answer = reservoir.arrive(
        replica, {&claim, epoch, &step, examples, {std::make_shared<int>(who), 0}});
    pour();
    return answer ? std::optional(answer->answer) : std::nullopt;
  }
  void void_member(uint64_t round, uint32_t block) {
    reservoir.void_member(round, batch(block).block);
    pour();
  }
  void pour() {
    SyncPour next;
    while (reservoir.next_pour(replica, &next)) {
      EXPECT_EQ(next.shares.size(), next.claim.ids.size());
      EXPECT_TRUE(std::is_sorted(next.claim.ids.begin(), next.claim.ids.end()));
      std::vector<int> poured;
      for (const SyncPour::Share& share : next.shares) {
        poured.push_back(name(share.ticket));
        weights.push_back(share.weight);
      }
      if (!poured.empty()) replica.commit(next.claim, 0);
      pours.push_back(poured);
      for (const SyncPour::Reply& reply : next.answers)
        answers[name(reply.ticket)] = reply.answer.answer;
    }
  }
  static int name(const SyncTicket& ticket) { return *static_cast<int*>(ticket.push.get()); }

  ShardReplica replica{3, kLife, kEpoch};
  SyncReservoir reservoir;
  std::vector<std::vector<int>> pours;  // whose gradients, in order
  std::vector<float> weights;
  std::map<int, Answer> answers;  // that came by a pour
};

using Answers = std::map<int, Answer>;

TEST(SyncReservoir, PoursInTheOrderOfIdentities) {
  const SyncStep step = step_of(4);
  std::vector<uint32_t> order = {0, 1, 2, 3};
  do {
    Shard shard;
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_TRUE(shard.pours.empty());
      EXPECT_EQ(shard.push(static_cast<int>(order[i]), step, order[i]), std::nullopt);
    }
    EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{0, 1, 2, 3}}));
    EXPECT_EQ(shard.weights, (std::vector<float>{0.1F, 0.2F, 0.3F, 0.4F}));
    EXPECT_EQ(shard.answers, (Answers{{0, Answer::kApplied},
                                      {1, Answer::kApplied},
                                      {2, Answer::kApplied},
                                      {3, Answer::kApplied}}));
    EXPECT_TRUE(shard.reservoir.empty());
    EXPECT_EQ(shard.replica.op(), 2U) << "the pass was opened, the step is one operation";
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(SyncReservoir, ARepeatWaitsBesideTheFirst) {
  Shard shard;
  const SyncStep step = step_of(2);
  EXPECT_EQ(shard.push(0, step, 0), std::nullopt);
  EXPECT_EQ(shard.push(100, step, 0), std::nullopt);
  EXPECT_TRUE(shard.pours.empty());
  EXPECT_EQ(shard.push(1, step, 1), std::nullopt);
  EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{0, 1}})) << "the first gradient counts";
  EXPECT_EQ(shard.answers.size(), 3U);
  EXPECT_EQ(shard.answers[100], Answer::kApplied);
  EXPECT_EQ(shard.push(200, step, 0), Answer::kDuplicate);
}

TEST(SyncReservoir, WhatIsInTheLedgerIsAnEmptyArrival) {
  Shard shard;
  shard.replica.commit({kLife, kGeometry, {batch(1)}}, 0);
  shard.replica.commit({kLife, kGeometry, {batch(2)}, Verdict::kSkipped}, 0);
  const SyncStep step = step_of(3);
  EXPECT_EQ(shard.push(1, step, 1), Answer::kDuplicate);
  EXPECT_EQ(shard.push(2, step, 2), Answer::kDuplicate);
  EXPECT_TRUE(shard.reservoir.empty());
  EXPECT_EQ(shard.push(0, step, 0), std::nullopt);
  EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{0}}));
  EXPECT_EQ(shard.weights, std::vector<float>{10.0F / 60}) << "the divisor is fixed";
}

TEST(SyncReservoir, AMarkWhileItWaits) {
  Shard shard;
  const SyncStep step = step_of(2);
  EXPECT_EQ(shard.push(0, step, 0), std::nullopt);
  shard.replica.commit({kLife, kGeometry, {batch(0)}, Verdict::kSkipped}, 0);
  shard.pour();
  EXPECT_TRUE(shard.pours.empty());
  EXPECT_EQ(shard.push(1, step, 1), std::nullopt);
  EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{1}}));
  EXPECT_EQ(shard.answers, (Answers{{0, Answer::kDuplicate}, {1, Answer::kApplied}}));
}

TEST(SyncReservoir, AVoidedMemberIsNotWaitedFor) {
  Shard shard;
  const SyncStep step = step_of(3);
  EXPECT_EQ(shard.push(0, step, 0), std::nullopt);
  EXPECT_EQ(shard.push(1, step, 1), std::nullopt);
  shard.void_member(1, 1);  // it has arrived: it stays
  EXPECT_TRUE(shard.pours.empty());
  EXPECT_NE(shard.reservoir.waits_for(shard.replica).find("round 1 waits for"), std::string::npos);
  shard.void_member(1, 2);
  EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{0, 1}}));
  EXPECT_EQ(shard.push(2, step, 2), Answer::kStaleRound) << "taken for dead";
  EXPECT_EQ(shard.push(3, step_of(3, 1, 1), 2), Answer::kStaleRound) << "in all later steps too";
  EXPECT_EQ(shard.push(1, step, 1), Answer::kDuplicate);
  EXPECT_EQ(shard.push(2, step_of(3, 2), 2), std::nullopt) << "in another round it is new";
  EXPECT_EQ(shard.pours.size(), 2U) << "the others of that step were applied before";
  EXPECT_EQ(shard.reservoir.waits_for(shard.replica), "");
}

TEST(SyncReservoir, AnAbsentMemberOfAPouredStepIsStale) {
  Shard shard;
  shard.void_member(1, 1);
  EXPECT_EQ(shard.push(0, step_of(2), 0), std::nullopt);
  EXPECT_EQ(shard.pours.size(), 1U);
  SyncStep other = step_of(3);  // a list that nobody was given
  EXPECT_EQ(shard.push(2, other, 2), Answer::kStaleRound);
}

TEST(SyncReservoir, OneBatchInTwoRounds) {
  // Block 1 arrived in round 1, its worker died; round 2 has it again, and pours first.
  Shard shard;
  EXPECT_EQ(shard.push(1, step_of(2, 1), 1), std::nullopt);
  SyncStep again{2, 0, {batch(1)}, 20};
  EXPECT_EQ(shard.push(2, again, 1), std::nullopt);
  EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{2}}));
  EXPECT_EQ(shard.push(0, step_of(2, 1), 0), std::nullopt);
  EXPECT_EQ(shard.pours.back(), std::vector<int>{0}) << "not twice";
  EXPECT_EQ(shard.answers[1], Answer::kDuplicate);
}

TEST(SyncReservoir, JudgedOnArrivalAndAtThePour) {
  Shard shard;
  const SyncStep step = step_of(2);
  const PushClaim claim{kLife, kGeometry, {batch(0)}};
  PushClaim other = claim;
  other.incarnation = 1;
  EXPECT_EQ(shard.push(0, step, other, kEpoch), Answer::kStaleIncarnation);
  other = claim;
  other.geometry = 1;
  EXPECT_EQ(shard.push(0, step, other, kEpoch), Answer::kStaleGeometry);
  EXPECT_EQ(shard.push(0, step, claim, {1, 0}), Answer::kStaleEpoch);
  EXPECT_EQ(shard.push(0, step, claim, kEpoch), std::nullopt);
  shard.replica.set_epoch({1, 2});
  EXPECT_EQ(shard.push(1, step, {kLife, kGeometry, {batch(1)}}, {1, 2}), std::nullopt);
  EXPECT_EQ(shard.answers, (Answers{{0, Answer::kStaleEpoch}, {1, Answer::kApplied}}));
  EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{1}}));
  shard.replica.close_below(1);
  EXPECT_EQ(shard.push(0, step, claim, {1, 2}), Answer::kDuplicate);
}

TEST(SyncReservoir, NothingToApply) {
  Shard shard;
  EXPECT_EQ(shard.push(0, step_of(2), 0), std::nullopt);
  shard.replica.commit({kLife, kGeometry, {batch(0)}, Verdict::kLost}, 0);
  const uint64_t op = shard.replica.op();
  shard.void_member(1, 1);
  EXPECT_EQ(shard.pours, (std::vector<std::vector<int>>{{}}));
  EXPECT_EQ(shard.answers, (Answers{{0, Answer::kDuplicate}}));
  EXPECT_EQ(shard.replica.op(), op);
}

TEST(SyncReservoir, ClosingThePassLetsEverybodyGo) {
  Shard shard;
  EXPECT_EQ(shard.push(0, step_of(2), 0), std::nullopt);
  shard.replica.close_below(1);
  shard.pour();
  EXPECT_EQ(shard.answers, (Answers{{0, Answer::kDuplicate}}));
  EXPECT_TRUE(shard.reservoir.empty());
}

TEST(SyncReservoir, StepsThatCannotBe) {
  Shard shard;
  const auto answer = [&](const std::function<void(SyncStep*, PushClaim*)>& change) {
    SyncStep step = step_of(3);
    PushClaim claim{kLife, kGeometry, {batch(0)}};
    change(&step, &claim);
    return shard.push(0, step, claim, kEpoch);
  };
  const auto bad = Answer::kMalformed;
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->round = 0; }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->step = 32; }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->ids.clear(); }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { std::swap(s->ids[1], s->ids[2]); }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->ids[1] = s->ids[0]; }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->ids[2].block.pass = 1; }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->ids[2].batch = 4; }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->examples = 0; }), bad);
  EXPECT_EQ(answer([](SyncStep* s, PushClaim*) { s->examples = 9; }), bad);
  EXPECT_EQ(answer([](SyncStep*, PushClaim* c) { c->ids = {batch(7)}; }), bad);
  EXPECT_EQ(answer([](SyncStep*, PushClaim* c) { c->ids = {}; }), bad);
  EXPECT_EQ(answer([](SyncStep*, PushClaim* c) { c->ids = {batch(0), batch(1)}; }), bad);
  EXPECT_EQ(answer([](SyncStep*, PushClaim* c) { c->verdict = Verdict::kSkipped; }), bad);
  EXPECT_EQ(answer([](SyncStep*, PushClaim*) {}), std::nullopt);
  // The same step with another list, or another divisor.
  EXPECT_EQ(shard.push(1, step_of(4), 1), bad);
  SyncStep more = step_of(3);
  ++more.examples;
  EXPECT_EQ(shard.push(1, more, 1), bad);
  EXPECT_EQ(shard.push(1, step_of(3), 1), std::nullopt);
}

TEST(SyncReservoir, IsBounded) {
  Shard shard;
  for (uint64_t round = 1; round <= SyncReservoir::kStepsMax; ++round)
    EXPECT_EQ(shard.push(0, step_of(2, round), 0), std::nullopt);
  EXPECT_EQ(shard.push(0, step_of(2, 1000), 0), Answer::kNotServing);
  for (size_t i = 1; i < SyncReservoir::kTicketsMax; ++i)
    EXPECT_EQ(shard.push(0, step_of(2, 5), 0), std::nullopt);
  EXPECT_EQ(shard.push(0, step_of(2, 5), 0), Answer::kNotServing);
  const auto gone = shard.reservoir.clear(shard.replica, Answer::kNotServing);
  EXPECT_EQ(gone.size(), SyncReservoir::kStepsMax + SyncReservoir::kTicketsMax - 1);
  EXPECT_TRUE(shard.reservoir.empty());
}

TEST(SyncReservoir, RoundsOfLongAgoAreOver) {
  Shard shard;
  shard.void_member(1, 0);
  for (uint32_t round = 1; round <= 2 * SyncReservoir::kRoundsKept; ++round) {
    const SyncStep step{round, 0, {batch(100 + round)}, 1U << 20};
    EXPECT_EQ(shard.push(0, step, 100 + round), std::nullopt);
  }
  EXPECT_EQ(shard.push(0, step_of(2, 1), 0), Answer::kStaleRound);
  EXPECT_EQ(shard.push(0, step_of(2, 3), 0), Answer::kStaleRound);
  EXPECT_EQ(shard.push(0, step_of(2, 500), 0), std::nullopt);
}

// Rounds with repeats, deaths and re-issued blocks in random order: at the end every batch is
// applied exactly once, and every push has an answer.
TEST(SyncReservoir, RandomRoundsApplyEveryBatchOnce) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Shard shard;
    constexpr uint32_t kBlocks = 6;
    std::map<uint32_t, int> applied;
    std::map<int, bool> answered;
    int who = 0;
    for (uint64_t round = 1; round < 60 && applied.size() < kBlocks; ++round) {
      // Some blocks that this shard may or may not have already; some of their workers die.
      std::vector<uint32_t> blocks;
      for (uint32_t b = 0; b < kBlocks; ++b)
        if (random.below(2) == 0) blocks.push_back(b);
      if (blocks.empty()) continue;
      SyncStep step{round, 0, {}, 1000};
      for (const uint32_t b : blocks) step.ids.push_back(batch(b));
      std::vector<std::pair<uint32_t, int>> events;  // block, 0 push, 1 death
      for (const uint32_t b : blocks) {
        const bool dies = random.below(4) == 0;
        for (uint64_t i = dies ? random.below(2) : 1 + random.below(2); i > 0; --i)
          events.emplace_back(b, 0);
        if (dies) events.emplace_back(b, 1);
      }
      for (size_t i = events.size(); i > 1; --i) std::swap(events[i - 1], events[random.below(i)]);
      for (const auto& [block, kind] : events) {
        if (kind == 1) {
          shard.void_member(round, block);
          continue;
        }
        const auto answer = shard.push(++who, step, block);
        answered[who] = answer.has_value();
      }
      EXPECT_TRUE(shard.reservoir.empty()) << "seed " << seed << " round " << round;
      applied.clear();
      for (uint32_t b = 0; b < kBlocks; ++b)
        if (shard.replica.ledger().find(batch(b))) applied[b] = 1;
    }
    size_t poured = 0;
    for (const std::vector<int>& pour : shard.pours) poured += pour.size();
    EXPECT_EQ(poured, kBlocks) << "seed " << seed;
    for (const auto& [push, at_once] : answered)
      EXPECT_NE(at_once, shard.answers.contains(push)) << "seed " << seed << " push " << push;
  }
}

}  // namespace
}  // namespace flux
