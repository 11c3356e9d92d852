// Sync steps through the server's port against plain sums.
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/optimizer/reference.h"
#include "flux/server/server.h"
#include "flux/server/test_push.h"
#include "flux/table/reference_table.h"

namespace flux {
namespace {

// Batch `n` of block `member`.
BatchId member_batch(uint32_t member, uint32_t n) {
  return {{0, 0, 0, member}, static_cast<uint8_t>(n), 4};
}

// One step of several members, each with its own number of examples.
struct Step {
  Step(uint32_t members, uint32_t n, const Server& server, size_t keys = 150, uint64_t round = 1) {
    step = {round, n, {}, 0};
    for (uint32_t m = 0; m < members; ++m) {
      const BatchId id = member_batch(m, n);
      pushes.push_back(std::make_unique<TestPush>(1000 * n + m, id, keys, server));
      pushes.back()->request.examples = 10 + 7 * m;
      step.ids.push_back(id);
      step.examples += pushes.back()->request.examples;
    }
    for (const auto& push : pushes) push->request.step = &step;
  }
  const PushRequest& operator[](size_t m) const { return pushes[m]->request; }
  SyncStep step;
  std::vector<std::unique_ptr<TestPush>> pushes;
};

// What came back of a push, whenever it does.
struct Outcome {
  std::atomic<int> calls{0};
  std::vector<Answer> answers;
};

void push(Server* server, const PushRequest& request, Outcome* outcome) {
  server->push(request, [outcome](const PushReply& reply) {
    for (const ShardAnswer& a : reply.answers) outcome->answers.push_back(a.answer);
    ++outcome->calls;
    outcome->calls.notify_all();
  });
}

std::vector<float> dense_of(Server* server) {
  std::vector<float> dense(server->options().parameters);
  const ShardedKeys none;
  std::vector<ShardId> shards;
  for (const ShardId id : server->primaries().shards)
    if (id >= kShards) shards.push_back(id);
  server->pull({kLife, shards, none, {}, dense.data()},
               [](const PullReply& reply) { EXPECT_TRUE(reply.status.is_ok()); });
  return dense;
}

class SyncRule : public testing::TestWithParam<const char*> {
 protected:
  static ServerOptions rule_options() {
    ServerOptions o = test_options();
    o.tables[0].optimizer = {.rule = GetParam(), .lr = 0.05F};
    o.tables[1].optimizer = o.tables[0].optimizer;
    o.dense_optimizer = o.tables[0].optimizer;
    o.parameters = 3000;  // one dense shard
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(Rules, SyncRule, testing::Values("sgd", "adagrad"));

// The mean over all examples of the step, summed in double, by key.
struct Mean {
  explicit Mean(const Step& step) : dense(step.pushes[0]->dense.size()) {
    std::vector<double> dense_sum(dense.size());
    std::map<Key, std::vector<double>> sums;
    for (const auto& push : step.pushes) {
      const double weight =
          static_cast<double>(push->request.examples) / static_cast<double>(step.step.examples);
      for (size_t i = 0; i < push->keys.size(); ++i) {
        std::vector<double>& row = sums.try_emplace(push->keys[i], kDim + 1).first->second;
        for (size_t d = 0; d < kDim; ++d) row[d] += weight * push->wide[i * kDim + d];
        row[kDim] += weight * push->narrow[i];
        count[push->keys[i]] += push->counts[i];
      }
      for (size_t i = 0; i < dense.size(); ++i) dense_sum[i] += weight * push->dense[i];
    }
    std::copy(dense_sum.begin(), dense_sum.end(), dense.begin());
    for (const auto& [key, row] : sums) {
      keys.push_back(key);
      counts.push_back(count[key]);
      wide.insert(wide.end(), row.begin(), row.begin() + kDim);
      narrow.push_back(static_cast<float>(row[kDim]));
    }
  }
  std::map<Key, uint32_t> count;
  std::vector<Key> keys;
  std::vector<uint32_t> counts;
  std::vector<float> wide, narrow, dense;
};

TEST_P(SyncRule, OneStepIsOnePushOfTheMean) {
  auto server = make_test_server(rule_options());
  ReferenceTable wide(rule_options().tables[0]), narrow(rule_options().tables[1]);
  const auto rule = make_reference_optimizer(rule_options().dense_optimizer);
  std::vector<float> weights(3000), state(rule->state_size(3000));
  rule->init_state(state.data(), 3000);
  uint64_t occurrences = 0;
  for (uint32_t n = 0; n < 4; ++n) {
    const Step step(5, n, *server);
    std::vector<Outcome> outcomes(5);
    // All alike, or a mean over the examples of the members.
    double scaled = 0, examples = 0;
    for (uint32_t m = 0; m < 5; ++m) {
      PushRequest& request = step.pushes[m]->request;
      request.lr_scale = n == 3 ? 0.5F + static_cast<float>(m) : n == 2 ? 3.0F : 1.0F;
      scaled += double{request.lr_scale} * static_cast<double>(request.examples);
      examples += static_cast<double>(request.examples);
    }
    const auto scale = static_cast<float>(scaled / examples);
    for (uint32_t m = 0; m < 5; ++m) {
      EXPECT_EQ(outcomes[0].calls, 0);
      push(server.get(), step[m], &outcomes[m]);
    }
    for (const Outcome& o : outcomes) {
      EXPECT_EQ(o.calls, 1);
      EXPECT_TRUE(all_are(o.answers, server->shard_count(), Answer::kApplied));
    }
    const Mean mean(step);
    wide.push(mean.keys, mean.wide.data(), mean.counts.data(), scale);
    narrow.push(mean.keys, mean.narrow.data(), mean.counts.data(), scale);
    rule->update(weights.data(), state.data(), mean.dense.data(), 3000, scale);
    for (const uint32_t count : mean.counts) occurrences += count;
  }
  EXPECT_EQ(server->totals().occurrences[0], occurrences);
  EXPECT_EQ(server->totals().dense.at(0).min, 4 * (50U + 70U));
  EXPECT_EQ(server->totals().rows, wide.rows().size() + narrow.rows().size());
  const TestPush all(3, member_batch(9, 0), 900, *server);  // only for its keys
  std::vector<float> got_wide(all.wide.size()), got_narrow(all.narrow.size());
  std::vector<float> want_wide(all.wide.size()), want_narrow(all.narrow.size());
  std::vector<float*> out = {got_wide.data(), got_narrow.data()};
  server->pull({kLife, std::span(all.shards).first(kShards), all.request.keys, out, nullptr},
               [](const PullReply& reply) { ASSERT_TRUE(reply.status.is_ok()); });
  wide.pull(all.keys, want_wide.data());
  narrow.pull(all.keys, want_narrow.data());
  const auto expect_near = [](const std::vector<float>& a, const std::vector<float>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6) << i;
  };
  expect_near(got_wide, want_wide);
  expect_near(got_narrow, want_narrow);
  expect_near(dense_of(server.get()), weights);
}

// w = decay * w + the gradients of all members, each whole; no scale of the learning rate.
TEST(PushSync, ASummaryGetsTheSumOfTheStep) {
  ServerOptions o = test_options();
  o.parameters = 3000;
  const OptimizerOptions summary{.rule = "summary", .decay = 0.5F};
  o.dense_ranges = {{1000, o.dense_optimizer, 1}, {500, summary, 1}, {1500, o.dense_optimizer, 1}};
  auto server = make_test_server(o);
  std::vector<double> want(500);
  for (uint32_t n = 0; n < 3; ++n) {
    const Step step(4, n, *server);
    std::vector<Outcome> outcomes(4);
    for (double& w : want) w *= 0.5;
    for (uint32_t m = 0; m < 4; ++m) {
      step.pushes[m]->request.lr_scale = 0.1F;
      for (size_t i = 0; i < 500; ++i) want[i] += step.pushes[m]->dense[1000 + i];
      push(server.get(), step[m], &outcomes[m]);
    }
    EXPECT_TRUE(all_are(outcomes[3].answers, server->shard_count(), Answer::kApplied));
  }
  const std::vector<float> dense = dense_of(server.get());
  for (size_t i = 0; i < 500; ++i) ASSERT_NEAR(dense[1000 + i], want[i], 1e-5) << i;
}

TEST(PushSync, OneMemberIsAPlainPush) {
  auto sync = make_test_server(), plain = make_test_server();
  for (uint32_t n = 0; n < 3; ++n) {
    const Step step(1, n, *sync);
    Outcome outcome;
    push(sync.get(), step[0], &outcome);
    EXPECT_TRUE(all_are(outcome.answers, 11, Answer::kApplied));
    PushRequest request = step[0];
    request.step = nullptr;
    send_push(plain.get(), request);
  }
  EXPECT_EQ(sync->content_hash(), plain->content_hash());
  EXPECT_EQ(sync->work(), plain->work());
  EXPECT_EQ(sync->work().size(), 11U);
}

TEST(PushSync, TheBitsDoNotDependOnWhoComesFirst) {
  std::vector<uint32_t> order = {0, 1, 2, 3};
  uint64_t first = 0;
  do {
    auto server = make_test_server();
    std::vector<Outcome> outcomes(12);
    for (uint32_t n = 0; n < 3; ++n) {
      const Step step(4, n, *server);
      for (const uint32_t m : order) push(server.get(), step[m], &outcomes[4 * n + m]);
      for (uint32_t m = 0; m < 4; ++m) ASSERT_EQ(outcomes[4 * n + m].calls, 1);
    }
    const uint64_t hash = server->content_hash();
    if (first == 0) first = hash;
    EXPECT_EQ(hash, first);
    EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 4), std::vector<uint32_t>(4, 0b111));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(PushSync, RepeatsDuplicatesAndStrangers) {
  auto server = make_test_server(), other = make_test_server();
  const Step step(2, 0, *server);
  Outcome first, again, second, late, stranger;
  push(server.get(), step[0], &first);
  push(server.get(), step[0], &again);
  EXPECT_NE(server->sync_waits().find("waits for pass 0"), std::string::npos);
  SyncStep wrong = step.step;
  wrong.examples += 1;
  PushRequest bad = step[1];
  bad.step = &wrong;
  push(server.get(), bad, &stranger);
  EXPECT_TRUE(all_are(stranger.answers, 11, Answer::kMalformed));
  EXPECT_EQ(first.calls + again.calls, 0);
  push(server.get(), step[1], &second);
  for (const Outcome* o : {&first, &again, &second})
    EXPECT_TRUE(all_are(o->answers, 11, Answer::kApplied));
  push(server.get(), step[0], &late);
  EXPECT_TRUE(all_are(late.answers, 11, Answer::kDuplicate));
  Outcome a, b;
  push(other.get(), step[1], &a);
  push(other.get(), step[0], &b);
  EXPECT_EQ(server->content_hash(), other->content_hash());
  EXPECT_EQ(server->sync_waits(), "");
}

// A batch that some shards have: they take it for empty, the others for what it is.
TEST(PushSync, APartIsThereAlready) {
  auto server = make_test_server();
  const Step step(2, 0, *server);
  PushRequest before = step[0];
  before.step = nullptr;
  const std::vector<ShardId> some = {1, 8};
  before.shards = some;
  before.epochs = before.epochs.first(2);
  ASSERT_TRUE(all_are(send_push(server.get(), before), 2, Answer::kApplied));
  const uint64_t had = server->totals().occurrences[0];
  Outcome a, b;
  push(server.get(), step[0], &a);
  push(server.get(), step[1], &b);
  ASSERT_EQ(a.answers.size(), 11U);
  for (ShardId id = 0; id < 11; ++id)
    EXPECT_EQ(a.answers[id], id == 1 || id == 8 ? Answer::kDuplicate : Answer::kApplied);
  EXPECT_TRUE(all_are(b.answers, 11, Answer::kApplied));
  EXPECT_GT(had, 0U);
  uint64_t due = 0;
  for (const auto& p : step.pushes)
    for (const uint32_t count : p->counts) due += count;
  EXPECT_EQ(server->totals().occurrences[0], due);
  EXPECT_EQ(server->totals().dense.at(0).min, 27U);
  EXPECT_EQ(server->totals().dense.at(0).max, 27U);
}

TEST(PushSync, AVoidedMember) {
  auto server = make_test_server(), plain = make_test_server();
  const Step step(3, 0, *server);
  Outcome a, c, dead, next;
  push(server.get(), step[0], &a);
  push(server.get(), step[2], &c);
  ASSERT_TRUE(void_member(server.get(), 1, member_batch(1, 0).block).is_ok());
  EXPECT_TRUE(all_are(a.answers, 11, Answer::kApplied));
  EXPECT_TRUE(all_are(c.answers, 11, Answer::kApplied));
  push(server.get(), step[1], &dead);
  EXPECT_TRUE(all_are(dead.answers, 11, Answer::kStaleRound));
  EXPECT_EQ(marked(*server, {0, 0, 0, 0}, 3, true), (std::vector<uint32_t>{1, 0, 1}));
  EXPECT_EQ(void_member(server.get(), 0, member_batch(1, 0).block).code(), Code::kInvalid);
  // It is trained in a later round, as a member of another worker.
  SyncStep later{2, 0, {member_batch(1, 0)}, step[1].examples};
  PushRequest request = step[1];
  request.step = &later;
  push(server.get(), request, &next);
  EXPECT_TRUE(all_are(next.answers, 11, Answer::kApplied));
}

TEST(PushSync, AMarkCompletesAStep) {
  auto server = make_test_server();
  const Step step(2, 0, *server);
  Outcome a;
  push(server.get(), step[0], &a);
  ASSERT_TRUE(mark(server.get(), kGeometry, {{member_batch(1, 0)}}, Verdict::kSkipped).is_ok());
  EXPECT_TRUE(all_are(a.answers, 11, Answer::kApplied));
}

TEST(PushSync, SealAndBoundsLetNobodyWait) {
  ServerOptions o = test_options();
  o.sync_bytes_max = 400000;  // one push has 160000 bytes of dense floats alone
  auto server = make_test_server(o);
  const Step step(4, 0, *server);
  std::vector<Outcome> outcomes(4);
  for (uint32_t m = 0; m < 3; ++m) push(server.get(), step[m], &outcomes[m]);
  EXPECT_EQ(outcomes[0].calls + outcomes[1].calls, 0);
  EXPECT_TRUE(all_are(outcomes[2].answers, 11, Answer::kNotServing)) << "too many bytes wait";
  ASSERT_TRUE(server->seal(server->primaries()).is_ok());
  EXPECT_TRUE(all_are(outcomes[0].answers, 11, Answer::kNotServing));
  EXPECT_TRUE(all_are(outcomes[1].answers, 11, Answer::kNotServing));
  push(server.get(), step[3], &outcomes[3]);
  EXPECT_TRUE(all_are(outcomes[3].answers, 11, Answer::kNotServing));
}

// Shards of two servers, each in its own order; members on their own threads.
TEST(PushSync, ThreadsPourTheSameBits) {
  constexpr uint32_t kMembers = 4, kSteps = 4;
  ServerOptions o = test_options();
  o.parameters = 20000;  // two dense shards
  const auto run = [&](bool threads) {
    auto server = make_test_server(o);
    std::vector<std::unique_ptr<Step>> steps;
    for (uint32_t n = 0; n < kSteps; ++n)
      steps.push_back(std::make_unique<Step>(kMembers, n, *server, 100));
    std::vector<Outcome> outcomes(kMembers * kSteps * 2);
    // Each push goes out twice; a member waits for its step before it begins the next one.
    const auto member = [&](uint32_t m) {
      for (uint32_t n = 0; n < kSteps; ++n) {
        Outcome* outcome = &outcomes[2 * (n * kMembers + m)];
        push(server.get(), (*steps[n])[m], outcome);
        push(server.get(), (*steps[n])[m], outcome + 1);
        for (int seen; threads && (seen = outcome->calls) == 0;) outcome->calls.wait(seen);
      }
    };
    const auto all = [&] {
      std::vector<std::thread> running;
      for (uint32_t m = 0; m < kMembers; ++m) running.emplace_back([&, m] { member(m); });
      for (std::thread& thread : running) thread.join();
    };
    if (threads) all();
    for (uint32_t m = 0; !threads && m < kMembers; ++m) member(m);
    for (Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(marked(*server, {0, 0, 0, 0}, kMembers), std::vector<uint32_t>(kMembers, ~0U));
    return server->content_hash();
  };
  EXPECT_EQ(run(true), run(false));
}

// The last member pushes its first step, then dies; whoever notices voids it beside the others.
TEST(PushSync, ThreadsGoOnWithoutADeadMember) {
  constexpr uint32_t kMembers = 4, kSteps = 4, kLive = kMembers - 1;
  ServerOptions o = test_options();
  o.parameters = 20000;
  auto server = make_test_server(o);
  std::vector<std::unique_ptr<Step>> steps;
  for (uint32_t n = 0; n < kSteps; ++n)
    steps.push_back(std::make_unique<Step>(kMembers, n, *server, 100));
  std::vector<Outcome> outcomes(kLive * kSteps);
  Outcome last, zombie;
  std::vector<std::thread> threads;
  for (uint32_t m = 0; m < kLive; ++m)
    threads.emplace_back([&, m] {
      for (uint32_t n = 0; n < kSteps; ++n) {
        Outcome* outcome = &outcomes[n * kLive + m];
        push(server.get(), (*steps[n])[m], outcome);
        for (int seen; (seen = outcome->calls) == 0;) outcome->calls.wait(seen);
      }
    });
  threads.emplace_back([&] {
    push(server.get(), (*steps[0])[kLive], &last);
    ASSERT_TRUE(void_member(server.get(), 1, member_batch(kLive, 0).block).is_ok());
    push(server.get(), (*steps[1])[kLive], &zombie);
  });
  for (std::thread& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes)
    EXPECT_TRUE(all_are(outcome.answers, 10, Answer::kApplied));
  EXPECT_TRUE(all_are(last.answers, 10, Answer::kApplied));
  EXPECT_TRUE(all_are(zombie.answers, 10, Answer::kStaleRound));
  uint64_t due = 0;
  for (uint32_t n = 0; n < kSteps; ++n)
    for (uint32_t m = 0; m < (n == 0 ? kMembers : kLive); ++m)
      for (const uint32_t count : steps[n]->pushes[m]->counts) due += count;
  EXPECT_EQ(server->totals().occurrences[0], due);
}

}  // namespace
}  // namespace flux
