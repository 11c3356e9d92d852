// Accounting against losses and doubles planted in a server's counters.
#include "flux/main/accounting.h"

#include <numeric>

#include <gtest/gtest.h>

#include "flux/base/key.h"

namespace flux {
namespace {

constexpr uint64_t kMark = 0xE5ULL << 56;  // above the record number of a key made from one
constexpr uint32_t kShards = 2;

class Counters {
 public:
  explicit Counters(uint64_t parameters) {
    ServerOptions o;
    o.shards = kShards;
    o.tables.resize(1);
    o.tables[0].dim = 1;
    o.dense_optimizer.rule = "sgd";
    o.parameters = parameters;
    gradient_.assign(parameters + 1, 0.0F);
    server_ = std::move(Server::create(o)).value();
    server_->open_pass(server_->primaries(), 0, 1,
                       [](const Status& status) { EXPECT_TRUE(status.is_ok()); });
  }
  // One push: `count` occurrences of one key, and so many examples on the dense shards.
  void add(Key key, uint32_t count, uint64_t examples = 0) {
    std::vector<ShardId> shards(server_->shard_count());
    std::iota(shards.begin(), shards.end(), 0U);
    const std::vector<ShardEpoch> epochs(shards.size());
    std::vector<uint32_t> begin(kShards + 1, 0);
    for (uint32_t s = shard_of(key, kShards) + 1; s <= kShards; ++s) begin[s] = 1;
    const float zero = 0;
    const float* table = &zero;
    PushRequest request;
    request.claim = {0, 1, {{{0, 0, 0, next_++}, 0, 1}}, Verdict::kApplied};
    request.shards = shards;
    request.epochs = epochs;
    request.keys = {&key, begin.data()};
    request.counts = &count;
    request.tables = {&table, 1};
    request.dense = gradient_.data();
    request.examples = examples;
    server_->push(request, [](const PushReply& reply) {
      for (const ShardAnswer& a : reply.answers) ASSERT_EQ(a.answer, Answer::kApplied);
    });
  }
  const Server& server() const { return *server_; }

 private:
  std::shared_ptr<Server> server_;
  std::vector<float> gradient_;
  uint32_t next_ = 0;
};

TEST(Accounting, ExactByOccurrences) {
  Counters counters(10);
  for (int i = 0; i < 40; ++i) counters.add(static_cast<Key>(i % 7), 3, 1);
  const ClosedPass passes[] = {{"a", 10, 3, 1, 0}, {"b", 10, 1, 1, 0}};
  const Accounting a = account(counters.server(), passes, 3, false, 0);
  EXPECT_EQ(a.expected, 40U);
  EXPECT_EQ(a.applied, 40U);
  EXPECT_TRUE(a.exact());
}

TEST(Accounting, LossesAndDoublesByOccurrences) {
  const ClosedPass passes[] = {{"a", 10, 1, 1, 0}};
  Counters less(0), more(0);
  less.add(1, 25);
  more.add(1, 34);
  const Accounting lost = account(less.server(), passes, 3, false, 0);
  EXPECT_EQ(lost.lost, 2U) << "five occurrences of three a piece are missing";
  EXPECT_EQ(lost.doubled, 0U);
  EXPECT_EQ(lost.applied, 8U);
  const Accounting doubled = account(more.server(), passes, 3, false, 0);
  EXPECT_EQ(doubled.doubled, 2U);
  EXPECT_EQ(doubled.lost, 0U);
  EXPECT_FALSE(doubled.exact());
}

TEST(Accounting, WhatOnlySomeShardsHaveIsNeitherLostNorDoubled) {
  const ClosedPass passes[] = {{"a", 10, 1, 1, 0}};
  for (const uint32_t extra : {0U, 1U, 6U}) {
    Counters counters(10);
    counters.add(1, 30 + extra, 10 + extra / 3);
    EXPECT_TRUE(account(counters.server(), passes, 3, false, 2).exact()) << extra;
  }
  Counters counters(10);
  counters.add(1, 37, 13);
  EXPECT_EQ(account(counters.server(), passes, 3, false, 2).doubled, 1U);
}

TEST(Accounting, DenseShardsAreAskedToo) {
  const ClosedPass passes[] = {{"a", 10, 1, 1, 0}};
  Counters less(10), more(10);
  less.add(1, 30, 7);
  more.add(1, 30, 11);
  EXPECT_EQ(account(less.server(), passes, 3, false, 0).lost, 3U);
  EXPECT_EQ(account(more.server(), passes, 3, false, 0).doubled, 1U);
}

// The sum of the counters is right; only the keys tell.
TEST(Accounting, ALossAndADoubleThatCancel) {
  const ClosedPass passes[] = {{"a", 10, 1, 1, 0}};
  Counters counters(0);
  for (uint64_t r = 0; r < 10; ++r)
    if (r != 4) counters.add(kMark | r, r == 7 ? 2 : 1);
  EXPECT_TRUE(account(counters.server(), passes, 1, false, 0).exact());
  const Accounting a = account(counters.server(), passes, 1, true, 0);
  EXPECT_EQ(a.lost, 1U);
  EXPECT_EQ(a.doubled, 1U);
  EXPECT_EQ(a.expected, 10U);
  EXPECT_EQ(a.applied, 9U);
}

TEST(Accounting, KeysOverSeveralPasses) {
  // Records 0..4 are in both passes, 5..9 in the first alone, which was trained twice.
  const ClosedPass passes[] = {{"a", 10, 2, 1, 0}, {"b", 5, 1, 1, 0}};
  Counters counters(0);
  for (uint64_t r = 0; r < 10; ++r) counters.add(kMark | r, r < 5 ? 3 : 2);
  const Accounting exact = account(counters.server(), passes, 1, true, 0);
  EXPECT_TRUE(exact.exact());
  EXPECT_EQ(exact.applied, 25U);
  counters.add(kMark | 77, 1);  // a record that no pass has
  EXPECT_EQ(account(counters.server(), passes, 1, true, 0).doubled, 1U);
}

TEST(Accounting, SkippedIsNotLost) {
  const ClosedPass passes[] = {{"a", 10, 1, 1, 2}};
  for (const bool by_key : {false, true}) {
    Counters counters(10);
    for (uint64_t r = 0; r < 8; ++r) counters.add(kMark | r, 1, 1);
    const Accounting a = account(counters.server(), passes, 1, by_key, 0);
    EXPECT_EQ(a.skipped, 2U);
    EXPECT_EQ(a.lost, 0U) << by_key;
    EXPECT_EQ(a.applied, 8U) << by_key;
    EXPECT_TRUE(a.exact());
  }
}

TEST(Accounting, FromTheTotalsOfSeveralServers) {
  const ClosedPass passes[] = {{"a", 10, 2, 1, 0}};
  ASSERT_EQ(expected_counts(passes).size(), 1U);
  EXPECT_EQ(expected_counts(passes)[0].records, 10U);
  EXPECT_EQ(expected_counts(passes)[0].repeats, 2U);
  JobTotals totals;  // rows of 9 records; of one a step too few, of one a step too many
  totals.occurrences = {18};
  totals.expected_seen = 18;
  totals.lost = 1;
  totals.doubled = 1;
  const Accounting a = account(totals, passes, 1, true, 0);
  EXPECT_EQ(a.lost, 3U);
  EXPECT_EQ(a.doubled, 1U);
  EXPECT_EQ(a.applied, 17U);
  EXPECT_EQ(account(totals, passes, 1, false, 0).lost, 2U);
}

TEST(Accounting, DenseShardsThatNeverSawAnything) {
  const ClosedPass passes[] = {{"a", 10, 1, 1, 0}};
  Counters counters(10);
  counters.add(1, 30, 0);
  EXPECT_EQ(account(counters.server(), passes, 3, false, 0).lost, 10U);
}

// Two phases over 10 records, twice each; the second does not change the second table.
TEST(Accounting, EachPhaseByItsOwnDenseShards) {
  ClosedPass pass{"p", 10, 4, 1, 3};
  pass.skipped_by_phase = {0, 3};
  const std::vector<ClosedPass> passes = {pass};
  const CountedModel model{2, false, {{{4, 1}, 7}, {{4, 0}, 5}}};
  JobTotals totals;
  totals.occurrences = {(20 + 17) * 2, 20 * 2};
  totals.dense = {{20, 20}, {17, 17}};
  const Accounting sum = account(totals, passes, {}, model);
  EXPECT_TRUE(sum.exact());
  EXPECT_EQ(sum.expected, 40U);
  EXPECT_EQ(sum.skipped, 3U);
  EXPECT_EQ(sum.applied, 37U);
  // One lost in the first and one doubled in the second, which the rows of the first table hide.
  totals.dense = {{19, 20}, {17, 18}};
  const std::vector<Accounting> phases = account_phases(totals, passes, {}, 2);
  EXPECT_EQ(phases[0].lost, 1U);
  EXPECT_EQ(phases[0].doubled, 0U);
  EXPECT_EQ(phases[1].lost, 0U);
  EXPECT_EQ(phases[1].doubled, 1U);
  EXPECT_EQ(account(totals, passes, {}, model).lost, 1U);
  EXPECT_EQ(account(totals, passes, {}, model).doubled, 1U);
  // Of an open pass 4 examples are on every shard, and of 2 more on some, in the second phase.
  const OpenPhase open[] = {{10, 10}, {4, 6}};
  const std::vector<ClosedPass> with_open = {pass, {"open", 14, 1, 0, 0}};
  totals.dense = {{30, 30}, {21, 23}};
  totals.occurrences = {(30 + 22) * 2, 30 * 2};
  EXPECT_TRUE(account(totals, with_open, open, model).exact());
  totals.occurrences[1] += 2;
  EXPECT_EQ(account(totals, with_open, open, model).doubled, 1U);
}

}  // namespace
}  // namespace flux
