// What a shard answers to every kind of claim, and that its stream hash tells histories apart.
#include "flux/protocol/shard_replica.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "flux/base/random.h"

namespace flux {
namespace {

constexpr uint64_t kLife = 77, kGeometry = 1234;
constexpr ShardEpoch kEpoch{3, 5};

BatchId batch(uint32_t block, uint8_t b, uint8_t of = 4) {
  return {{1, 0, 0, block}, b, of};
}

PushClaim claim(std::vector<BatchId> ids) {
  return {kLife, kGeometry, std::move(ids), {}};
}

// Pass 0 is closed, pass 1 is open and has batches 0 and 1 of block 0.
ShardReplica replica() {
  ShardReplica r(9, kLife, kEpoch);
  r.close_below(1);
  EXPECT_TRUE(r.open_pass(1, kGeometry).is_ok());
  r.commit(claim({batch(0, 0)}), 1);
  r.commit(claim({batch(0, 1)}), 2);
  return r;
}

std::string encoded(const ShardReplica& r) {
  ByteWriter out;
  r.encode(&out);
  return out.take();
}

struct Case {
  const char* what;
  Answer answer;
  std::function<void(PushClaim*, ShardEpoch*, ShardReplica*)> change;
};

using C = PushClaim;
using E = ShardEpoch;
using R = ShardReplica;

const std::vector<Case>& honest_cases() {
  static const std::vector<Case> kCases = {
      {"new", Answer::kApplied, [](C*, E*, R*) {}},
      {"two new", Answer::kApplied, [](C* c, E*, R*) { c->ids.push_back(batch(7, 0)); }},
      {"had it", Answer::kDuplicate, [](C* c, E*, R*) { c->ids = {batch(0, 1)}; }},
      {"had both", Answer::kDuplicate,
       [](C* c, E*, R*) {
         c->ids = {batch(0, 0), batch(0, 1)};
       }},
      {"had it, other verdict", Answer::kDuplicate,
       [](C* c, E*, R*) { c->ids = {batch(0, 1)}, c->verdict = Verdict::kSkipped; }},
      {"closed pass", Answer::kDuplicate,
       [](C* c, E*, R*) {
         c->ids = {{{0, 0, 0, 3}, 0, 4}};
       }},
      {"closed pass, any geometry", Answer::kDuplicate,
       [](C* c, E*, R*) {
         c->ids = {{{0, 0, 0, 3}, 0, 4}}, c->geometry = 5;
       }},
      {"a part", Answer::kPartial,
       [](C* c, E*, R*) {
         c->ids = {batch(0, 1), batch(0, 2), batch(5, 0)};
       }},
      {"other life", Answer::kStaleIncarnation, [](C* c, E*, R*) { c->incarnation = kLife + 1; }},
      {"other life and epoch", Answer::kStaleIncarnation,
       [](C* c, E* e, R*) { c->incarnation = 0, e->n = 0; }},
      {"life changed by a load", Answer::kStaleIncarnation,
       [](C*, E*, R* r) { r->set_incarnation(78); }},
      {"older epoch", Answer::kStaleEpoch, [](C*, E* e, R*) { e->n -= 1; }},
      {"newer epoch", Answer::kStaleEpoch, [](C*, E* e, R*) { e->term += 1; }},
      {"shard moved", Answer::kStaleEpoch,
       [](C*, E*, R* r) {
         r->set_epoch({4, 0});
       }},
      {"sealed", Answer::kNotServing, [](C*, E*, R* r) { r->seal(); }},
      {"other cut", Answer::kStaleGeometry, [](C* c, E*, R*) { c->geometry += 1; }},
      {"no cut", Answer::kStaleGeometry, [](C* c, E*, R*) { c->geometry = 0; }},
      {"unopened pass", Answer::kStaleGeometry,
       [](C* c, E*, R*) {
         c->ids = {{{2, 0, 0, 0}, 0, 4}};
       }},
  };
  return kCases;
}

const std::vector<Case>& malformed_cases() {
  static const std::vector<Case> kCases = {
      {"no ids", Answer::kMalformed, [](C* c, E*, R*) { c->ids.clear(); }},
      {"batch beyond block", Answer::kMalformed, [](C* c, E*, R*) { c->ids = {batch(0, 4)}; }},
      {"no batches", Answer::kMalformed, [](C* c, E*, R*) { c->ids = {batch(0, 0, 0)}; }},
      {"33 batches", Answer::kMalformed, [](C* c, E*, R*) { c->ids = {batch(6, 32, 33)}; }},
      {"repeated", Answer::kMalformed,
       [](C* c, E*, R*) {
         c->ids = {batch(6, 0), batch(6, 0)};
       }},
      {"unsorted", Answer::kMalformed,
       [](C* c, E*, R*) {
         c->ids = {batch(6, 1), batch(6, 0)};
       }},
      {"two passes", Answer::kMalformed,
       [](C* c, E*, R*) {
         c->ids = {batch(6, 1), {{2, 0, 0, 0}, 0, 4}};
       }},
      {"one batch under two cuts", Answer::kMalformed,
       [](C* c, E*, R*) {
         c->ids = {batch(6, 0, 4), batch(6, 0, 5)};
       }},
      {"one block under two cuts", Answer::kMalformed,
       [](C* c, E*, R*) {
         c->ids = {batch(6, 0, 4), batch(6, 1, 5)};
       }},
      {"a cut that the ledger knows otherwise", Answer::kMalformed,
       [](C* c, E*, R*) { c->ids = {batch(0, 5, 8)}; }},
      {"a block number without end", Answer::kMalformed,
       [](C* c, E*, R*) { c->ids = {batch(~0U, 0)}; }},
      {"verdict out of range", Answer::kMalformed,
       [](C* c, E*, R*) { c->verdict = static_cast<Verdict>(4); }},
  };
  return kCases;
}

TEST(ShardReplica, AnswersEveryClaim) {
  std::set<Answer> seen;
  std::vector<Case> cases = honest_cases();
  cases.insert(cases.end(), malformed_cases().begin(), malformed_cases().end());
  for (const Case& c : cases) {
    ShardReplica r = replica();
    PushClaim push = claim({batch(0, 2)});
    ShardEpoch epoch = kEpoch;
    c.change(&push, &epoch, &r);
    const std::string before = encoded(r);
    const ShardAnswer answer = r.judge(push, epoch);
    EXPECT_STREQ(answer_name(answer.answer), answer_name(c.answer)) << c.what;
    EXPECT_EQ(answer.shard, 9U);
    EXPECT_EQ(answer.op, r.op());
    EXPECT_EQ(encoded(r), before) << "judging changes nothing: " << c.what;
    const auto already =
        c.answer == Answer::kPartial ? std::vector{batch(0, 1)} : std::vector<BatchId>();
    EXPECT_EQ(answer.already, already) << c.what;
    seen.insert(answer.answer);
  }
  EXPECT_EQ(seen.size(), 8U) << "all answers have a case";
}

// Whatever is claimed, a claim that is judged new can be committed, and the state can be saved.
TEST(ShardReplica, RandomClaimsNeverBreakIt) {
  Random random(3);
  ShardReplica r = replica();
  for (int i = 0; i < 20000; ++i) {
    PushClaim push = claim({});
    push.verdict = static_cast<Verdict>(random.below(5));
    for (uint64_t n = random.below(4); n > 0; --n)
      push.ids.push_back(
          {{static_cast<uint32_t>(random.below(3)), 0, 0, static_cast<uint32_t>(random.below(50))},
           static_cast<uint8_t>(random.below(6)),
           static_cast<uint8_t>(random.below(6))});
    if (random.chance(0.9)) std::sort(push.ids.begin(), push.ids.end());
    if (r.judge(push, kEpoch).answer != Answer::kApplied) continue;
    r.commit(push, i);
    const auto again = r.judge(push, kEpoch).answer;
    ASSERT_EQ(again, Answer::kDuplicate);
  }
  EXPECT_GT(r.op(), 50U);
  const std::string bytes = encoded(r);
  ByteReader in(bytes);
  const auto back = ShardReplica::decode(&in);
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(encoded(back.value()), bytes);
}

TEST(ShardReplica, StreamHashTellsHistoriesApart) {
  EXPECT_EQ(replica().stream_hash(), replica().stream_hash());
  std::set<uint64_t> hashes = {replica().stream_hash()};
  size_t histories = 1;
  const auto add = [&](const std::function<void(ShardReplica*)>& change) {
    ShardReplica r = replica();
    change(&r);
    hashes.insert(r.stream_hash());
    ++histories;
  };
  add([](ShardReplica* r) { r->commit(claim({batch(0, 2)}), 3); });
  add([](ShardReplica* r) { r->commit(claim({batch(0, 2)}), 4); });
  add([](ShardReplica* r) { r->commit(claim({batch(0, 3)}), 3); });
  add([](ShardReplica* r) { r->commit(claim({batch(0, 2), batch(0, 3)}), 3); });
  add([](ShardReplica* r) {
    PushClaim skipped = claim({batch(0, 2)});
    skipped.verdict = Verdict::kSkipped;
    r->commit(skipped, 3);
  });
  add([](ShardReplica* r) {
    r->commit(claim({batch(0, 2)}), 3);
    r->commit(claim({batch(0, 3)}), 3);
  });
  add([](ShardReplica* r) {
    r->commit(claim({batch(0, 3)}), 3);
    r->commit(claim({batch(0, 2)}), 3);
  });
  add([](ShardReplica* r) { EXPECT_TRUE(r->open_pass(2, 5).is_ok()); });
  add([](ShardReplica* r) { EXPECT_TRUE(r->open_pass(2, 6).is_ok()); });
  add([](ShardReplica* r) { r->close_below(2); });
  EXPECT_EQ(hashes.size(), histories);
}

TEST(ShardReplica, PassesOpenOnceAndClose) {
  ShardReplica r = replica();
  const uint64_t op = r.op();
  EXPECT_TRUE(r.open_pass(1, kGeometry).is_ok());
  EXPECT_EQ(r.op(), op) << "opening again is no operation";
  EXPECT_EQ(r.open_pass(1, kGeometry + 1).code(), Code::kStale);
  EXPECT_EQ(r.open_pass(0, kGeometry).code(), Code::kStale);
  EXPECT_EQ(r.geometry(1), kGeometry);
  r.close_below(2);
  EXPECT_EQ(r.geometry(1), 0U);
  EXPECT_EQ(r.op(), op + 1);
  r.close_below(2);
  r.close_below(1);
  EXPECT_EQ(r.op(), op + 1) << "closing again is no operation";
}

TEST(ShardReplica, ANewEpochUnseals) {
  ShardReplica r = replica();
  r.seal();
  r.set_epoch({3, 6});
  EXPECT_EQ(r.judge(claim({batch(0, 2)}), {3, 6}).answer, Answer::kApplied);
  EXPECT_DEATH(r.set_epoch({3, 6}), "never used twice");
}

TEST(ShardReplica, DecodesWhatItEncodesAndNothingElse) {
  const std::string bytes = encoded(replica());
  ByteReader whole(bytes);
  const auto back = ShardReplica::decode(&whole);
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(whole.left(), 0U);
  const ShardReplica& r = back.value();
  EXPECT_EQ(r.shard(), 9U);
  EXPECT_EQ(r.incarnation(), kLife);
  EXPECT_EQ(r.epoch(), kEpoch);
  EXPECT_EQ(r.op(), replica().op());
  EXPECT_EQ(r.stream_hash(), replica().stream_hash());
  EXPECT_EQ(r.ledger(), replica().ledger());
  EXPECT_EQ(r.geometry(1), kGeometry);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(std::string_view(bytes).substr(0, size));
    const auto cut = ShardReplica::decode(&in);
    ASSERT_FALSE(cut.is_ok()) << size;
    EXPECT_EQ(cut.status().code(), Code::kCorrupt);
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string bad = bytes;
    bad[bit / 8] ^= static_cast<char>(1U << (bit % 8));
    ByteReader in(bad);
    const auto other = ShardReplica::decode(&in);
    if (other.is_ok()) {
      ASSERT_EQ(encoded(other.value()), bad.substr(0, in.offset())) << bit;
    }
  }
}

TEST(ShardReplica, AFollowerTakesWhatIsNextAndNothingElse) {
  ShardReplica r = replica();
  const uint64_t head = r.op();
  EXPECT_EQ(r.judge_follow(kEpoch, head + 1), FollowAnswer::kNotFollower) << "a primary";
  EXPECT_EQ(r.judge_follow({3, 4}, head + 1), FollowAnswer::kOlderEpoch);
  for (const ReplicaRole role : {ReplicaRole::kBackup, ReplicaRole::kLearner}) {
    r.set_role(role);
    EXPECT_EQ(r.judge_follow(kEpoch, head + 1), FollowAnswer::kApply);
    EXPECT_EQ(r.judge_follow(kEpoch, head), FollowAnswer::kHave);
    EXPECT_EQ(r.judge_follow(kEpoch, 1), FollowAnswer::kHave);
    EXPECT_EQ(r.judge_follow(kEpoch, head + 2), FollowAnswer::kHold);
    EXPECT_EQ(r.judge_follow({3, 4}, head + 1), FollowAnswer::kOlderEpoch);
    EXPECT_EQ(r.judge_follow({3, 6}, head + 1), FollowAnswer::kNewerEpoch);
  }
  EXPECT_EQ(r.judge(claim({batch(0, 2)}), kEpoch).answer, Answer::kNotServing);
  EXPECT_EQ(r.judge_forwarded(claim({batch(0, 2)})), Answer::kApplied);
  EXPECT_EQ(r.judge_forwarded(claim({batch(0, 1)})), Answer::kDuplicate);
  EXPECT_EQ(r.judge_forwarded(claim({batch(0, 1), batch(0, 2)})), Answer::kPartial);
  EXPECT_EQ(r.judge_forwarded(claim({})), Answer::kMalformed);
  PushClaim other = claim({batch(0, 2)});
  other.incarnation += 1;
  EXPECT_EQ(r.judge_forwarded(other), Answer::kStaleIncarnation);
}

TEST(ShardReplica, RemembersTheHashesOfItsLastOperations) {
  ShardReplica r = replica();
  std::map<uint64_t, uint64_t> hashes = {{r.op(), r.stream_hash()}};
  for (uint32_t i = 0; i < 100; ++i) {
    r.commit(claim({batch(10 + i / 4, i % 4)}), i);
    hashes[r.op()] = r.stream_hash();
  }
  for (const auto& [op, hash] : hashes) {
    EXPECT_TRUE(r.agrees(op, hash)) << op;
    EXPECT_EQ(r.agrees(op, hash + 1), op + 64 <= r.op())
        << op << ": what is long past is not known";
  }
  EXPECT_TRUE(r.agrees(r.op() + 1, 5)) << "what has not come";
}

}  // namespace
}  // namespace flux
