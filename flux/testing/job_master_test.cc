// JobMaster with workers that the test plays: sections, checkpoints, verdicts, rounds, the end.
#include <filesystem>

#include "flux/checkpoint/store.h"
#include "flux/coordinator/decision_log.h"
#include "flux/metrics/metric_set.h"
#include "flux/testing/job_master_fixture.h"

namespace flux {
namespace {

TEST_F(JobMasterTest, TrainsEveryBatchOnceOverTwoEpochsAndClosesThePass) {
  plan_.schedule.epochs = 2;
  begin();
  EXPECT_EQ(master_->status().servers[0].shards + master_->status().servers[1].shards, kTestShards);
  EXPECT_EQ(train_all(join("w0")), 2U * 5 * 2);
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_TRUE(outcome_->complete);
  ASSERT_EQ(outcome_->passes.size(), 1U);
  EXPECT_EQ(outcome_->passes[0].records * outcome_->passes[0].repeats, 200U);
  EXPECT_EQ(CheckpointStore(plan_.output + "/checkpoints").load_newest().value().closed.size(), 1U);
}

TEST_F(JobMasterTest, ALostReplyLosesNoBlock) {
  begin();
  const WorkerId w = join("w0");
  LeaseRequest request;
  request.worker = w;
  request.seq = 1;
  const auto first = ask(request), again = ask(request);
  ASSERT_TRUE(first.is_ok() && again.is_ok());
  EXPECT_EQ(first.value().lease.id, again.value().lease.id);
  EXPECT_EQ(master_->status().pending, 1U);
  request.seq = 2;
  EXPECT_NE(ask(request).value().lease.id, first.value().lease.id);
}

TEST_F(JobMasterTest, BlocksOfADeadWorkerGoToAnother) {
  begin();
  const WorkerId dead = join("w0");
  ASSERT_EQ(lease(dead).value().kind, LeaseAnswer::Kind::kBlock);
  ASSERT_EQ(lease(dead).value().kind, LeaseAnswer::Kind::kBlock);
  pass_time(options_.member_lease_ns + kSecond);
  EXPECT_EQ(lease(dead).status().code(), Code::kStale);
  EXPECT_EQ(train_all(join("w1")), 5U * 2);
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_NE(said_.find("lost w0"), std::string::npos);
}

TEST_F(JobMasterTest, HintsThatLieDoNotCloseASection) {
  begin();
  const WorkerId w = join("w0");
  std::vector<BatchId> said;
  for (int i = 0; i < 5; ++i) said = batches(lease(w, said).value().lease);  // no shard has it
  const auto again = lease(w, said);
  EXPECT_EQ(master_->status().state, "training");
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(train_all(w, train(again.value())), 5U * 2);
  EXPECT_TRUE(ended_well());
}

TEST_F(JobMasterTest, StopSavesAndTheNextRunTrainsTheRest) {
  begin();
  WorkerId w = join("w0");
  const auto done = train(lease(w).value());
  const auto held = lease(w, done);
  master_->stop("asked to");
  EXPECT_EQ(master_->status().state, "stopping");
  bool stop = false;
  master_->report(w, {}, [&](const Result<ReportAnswer>& a) { stop = a.value().stop; });
  EXPECT_TRUE(stop);
  LeaseRequest last;
  last.worker = w;
  last.applied = train(held.value());
  master_->leave(last, {}, Status::ok(), [](const Status&) {});
  clock_.advance(kSecond);
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_FALSE(outcome_->complete);
  EXPECT_EQ(outcome_->passes.back().records, 40U);

  begin();
  seq_.clear();
  EXPECT_EQ(train_all(join("w0", 2)), 3U * 2);
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_TRUE(outcome_->complete);
  EXPECT_FALSE(outcome_->resumed_from.empty());
}

TEST_F(JobMasterTest, ABatchOnWhichWorkersDieAloneIsSkippedAndThatStays) {
  blocks_ = 2;
  begin();
  const BatchId poison{{0, 0, 0, 1}, 1, 2};
  const int deaths = train_with_poison(poison);
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_EQ(deaths, 2 + 3);
  EXPECT_EQ(outcome_->passes[0].skipped_examples, 10U);
  EXPECT_NE(said_.find("skipped pass 0 phase 0 epoch 0 block 1"), std::string::npos) << said_;
  const auto log = DecisionLog(&real_files(), plan_.output + "/coordinator.log").read();
  ASSERT_TRUE(log.is_ok());
  EXPECT_EQ(std::count_if(log.value().begin(), log.value().end(),
                          [&](const Decision& d) { return d.batch == poison; }),
            1);
}

// A shard has a mark of the batch, so somebody may have trained it: it gets a second chance. But it
// was the verdict of a coordinator whose log is gone; there is no third.
TEST_F(JobMasterTest, AMarkOnOneShardDoesNotLetABatchKillForEver) {
  blocks_ = 2;
  begin();
  const BatchId poison{{0, 0, 0, 1}, 1, 2};
  ClusterMap map;
  master_->map([&](const Result<ClusterMap>& m) { map = m.value(); });
  AdminCall call;
  call.incarnation = master_->status().incarnation;
  call.term = map.route.epoch[0].term;
  call.shards = {0};
  call.epochs = {map.route.epoch[0]};
  Status marked = invalid("no answer");
  servers_.at(map.servers[map.route.server[0]])
      ->admin->mark(call, make_geometry(blocks_).hash(), {poison}, Verdict::kSkipped,
                    [&](const Status& status) { marked = status; });
  clock_.advance(100 * kMillisecond);
  ASSERT_TRUE(marked.is_ok()) << marked.message();
  const int deaths = train_with_poison(poison);
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_GT(deaths, 2 + 3);
  EXPECT_EQ(outcome_->passes[0].skipped_examples, 10U);
}

TEST_F(JobMasterTest, SyncGivesOneRoundToAllAndVoidsTheDead) {
  plan_.mode = "sync";
  begin();
  const WorkerId a = join("a"), b = join("b");
  auto held = std::make_shared<std::optional<LeaseAnswer>>();
  LeaseRequest request;
  request.worker = a;
  request.seq = ++seq_[{a, 0}];
  master_->lease(request, [held](const Result<LeaseAnswer>& r) { *held = r.value(); });
  clock_.advance(100 * kMillisecond);
  EXPECT_FALSE(held->has_value());  // b is not there yet
  const auto to_b = lease(b);
  ASSERT_TRUE(held->has_value() && to_b.is_ok());
  EXPECT_EQ((*held)->round, to_b.value().round);
  EXPECT_EQ((*held)->round.members.size(), 2U);
  master_->worker_gone("b", 1, "killed");
  clock_.advance(100 * kMillisecond);
  const auto done = train(**held);
  const auto next = lease(a, done);
  ASSERT_TRUE(next.is_ok());
  EXPECT_EQ(next.value().round.members.size(), 1U);
}

TEST_F(JobMasterTest, EveryWaitHasAnEnd) {
  begin(false);
  EXPECT_EQ(master_->status().waits.at(0).what, "for 2 more server(s) to join");
  clock_.advance(options_.servers_deadline_ns + kSecond);
  ASSERT_TRUE(outcome_);
  EXPECT_NE(outcome_->status.message().find("0 of 2 servers joined"), std::string::npos);

  begin();
  EXPECT_EQ(master_->status().waits.at(0).what, "for a worker to join");
  pass_time(options_.workers_deadline_ns + 2 * kSecond);
  ASSERT_TRUE(outcome_);
  EXPECT_NE(outcome_->status.message().find("no worker"), std::string::npos);

  begin();
  // Servers are silent, and each alone has its shards: they are waited for longer.
  clock_.advance(options_.member_lease_ns + kSecond);
  EXPECT_NE(said_.find("server-1 is not heard; it alone has"), std::string::npos) << said_;
  EXPECT_EQ(said_.find("lost server-1"), std::string::npos) << said_;
  clock_.advance(options_.last_replica_ns + 2 * options_.member_lease_ns);
  EXPECT_NE(said_.find("lost server-1: it was not heard"), std::string::npos);
  const auto waits = master_->status().waits;
  EXPECT_TRUE(std::any_of(waits.begin(), waits.end(), [](const WaitStatus& w) {
    return w.what == "for a server to join" && w.until_s > 0;
  }));
  clock_.advance(options_.servers_deadline_ns + kSecond);
  ASSERT_TRUE(outcome_);
  EXPECT_NE(outcome_->status.message().find("no server has been here"), std::string::npos)
      << outcome_->status.message();
}

TEST_F(JobMasterTest, AWorkerThatComesEarlyIsToldWhatEverybodyWaitsFor) {
  begin(false);
  std::optional<JoinReply> reply;
  JoinRequest request;
  request.name = "w0";
  request.boot = 1;
  master_->join(request, [&](const Result<JoinReply>& r) { reply = r.value(); });
  clock_.advance(2 * options_.join_hold_ns);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->waits, "for 2 more server(s) to join");
}

TEST_F(JobMasterTest, AServerThatGoesWhileOthersJoinLeavesThemTheirNumbers) {
  options_.servers = 3;
  begin(false);
  TestServer *a = servers_.find("server-0"), *b = servers_.find("server-1");
  join_server(a);
  join_server(b);
  EXPECT_EQ(a->id, 0U);
  EXPECT_EQ(b->id, 1U);
  kill("server-0");
  EXPECT_NE(said_.find("lost server-0: its connection is closed"), std::string::npos);
  Status status = invalid("no answer");
  master_->report({1, b->boot, {}, 0}, [&](const Result<bool>& r) { status = r.status(); });
  EXPECT_TRUE(status.is_ok()) << status.message();
  master_->report({0, a->boot, {}, 0}, [&](const Result<bool>& r) { status = r.status(); });
  EXPECT_EQ(status.code(), Code::kStale) << "taken for dead: it must forget everything";
  master_->report({7, 99, {}, 0}, [&](const Result<bool>& r) { status = r.status(); });
  EXPECT_EQ(status.code(), Code::kNotFound) << "never heard of: it joins with what it has";
  TestServer* again = servers_.start("server-0");
  join_server(again);
  EXPECT_EQ(again->id, 2U) << "numbers are not used twice";
  EXPECT_EQ(master_->status().servers.size(), 2U);
}

TEST_F(JobMasterTest, StoppedWhileItWaitsForServersItEndsAtOnce) {
  begin();
  const WorkerId w = join("w0");
  const auto done = train(lease(w).value());
  LeaseRequest last;
  last.worker = w;
  last.applied = done;
  master_->stop("asked to");
  master_->leave(last, {}, Status::ok(), [](const Status&) {});
  clock_.advance(kSecond);
  ASSERT_TRUE(ended_well());

  begin(false);  // resuming an open pass, without a server
  master_->stop("asked to");
  clock_.advance(kSecond);
  ASSERT_TRUE(ended_well());
  EXPECT_FALSE(outcome_->complete);
  EXPECT_TRUE(outcome_->passes.empty());
}

TEST_F(JobMasterTest, WithoutWorkersWhatIsTrainedIsSavedBeforeTheEnd) {
  begin();
  const WorkerId w = join("w0");
  LeaseRequest last;
  last.worker = w;
  last.applied = train(lease(w).value());
  master_->leave(last, {}, Status::ok(), [](const Status&) {});
  pass_time(options_.workers_deadline_ns + 2 * kSecond);
  ASSERT_TRUE(outcome_);
  EXPECT_NE(outcome_->status.message().find("no worker has been here"), std::string::npos);
  const auto saved = CheckpointStore(plan_.output + "/checkpoints").load_newest();
  ASSERT_TRUE(saved.is_ok());
  EXPECT_EQ(saved.value().examples, 20U);
}

TEST_F(JobMasterTest, DeterministicCheckpointsFallBetweenBlocks) {
  plan_.deterministic = true;
  plan_.checkpoint_every_s = 1;
  begin();
  const WorkerId w = join("w0");
  const auto first = lease(w);
  pass_time(3 * kSecond);
  EXPECT_TRUE(master_->status().last_checkpoint.empty());  // a block is out
  const auto second = lease(w, train(first.value()));
  clock_.advance(100 * kMillisecond);
  EXPECT_FALSE(master_->status().last_checkpoint.empty());
  EXPECT_TRUE(second.is_ok());
}

class JobMasterTested : public JobMasterTest {
 protected:
  // Trains and evaluates to the end of the job, each batch of test data to `scored`.
  void evaluate_all(const std::string& scored) {
    plan_.has_test = true;
    begin();
    const WorkerId w = join("w0");
    std::vector<BatchId> done;
    std::vector<EvalReport> evaluated;
    for (int i = 0; i < 50 && !outcome_; ++i) {
      LeaseRequest request;
      request.worker = w;
      request.seq = static_cast<uint64_t>(i) + 1;
      request.applied = done;
      request.evaluated = evaluated;
      if (!evaluated.empty()) request.evaluated.push_back(evaluated[0]);  // twice
      keep_alive();
      const auto answer = ask(request);
      done.clear();
      evaluated.clear();
      if (!answer.is_ok()) continue;
      if (answer.value().kind == LeaseAnswer::Kind::kBlock) done = train(answer.value());
      if (answer.value().kind == LeaseAnswer::Kind::kEvaluate)
        for (const BatchId& id : batches(answer.value().lease)) evaluated.push_back({id, scored});
    }
    pass_time(options_.leave_deadline_ns + kSecond);
  }
};

TEST_F(JobMasterTested, BlocksAreLeasedAndCountedOnce) {
  // Four of five positives are ranked above four of five negatives, and one of each the other way.
  const std::vector<float> predictions = {.2F, .2F, .2F, .2F, .2F, .8F, .8F, .8F, .8F, .8F};
  const std::vector<float> labels = {0, 0, 0, 0, 1, 1, 1, 1, 1, 0};
  const KeyedBatch scored{{}, {predictions, labels, {}, {}}};
  evaluate_all(encode_scored(10, 5.0, {&scored, 1}));
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_TRUE(outcome_->complete);
  EXPECT_NE(said_.find("test: 20 examples, AUC 0.80000, log loss 0.50040"), std::string::npos)
      << said_;
}

// Whoever evaluates the batch again would say the same.
TEST_F(JobMasterTested, WhatCannotBeCountedEndsTheTestAndIsTold) {
  evaluate_all("no metrics");
  ASSERT_TRUE(outcome_) << said_;
  EXPECT_TRUE(outcome_->complete) << "the training is saved and counted";
  EXPECT_FALSE(outcome_->test);
  EXPECT_EQ(outcome_->evaluation.code(), Code::kInvalid);
}

TEST_F(JobMasterTest, AWorkerWithAnotherModelIsRefusedWithTheDifference) {
  plan_.model = {{"tables.e.dim", "10"}};
  begin();
  JoinRequest request;
  request.name = "w9";
  request.model = {{"tables.e.dim", "16"}};
  Status refused;
  master_->join(request, [&](const Result<JoinReply>& r) { refused = r.status(); });
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.message().find("tables.e.dim"), std::string::npos);
  EXPECT_NE(said_.find("refused w9"), std::string::npos);
}

TEST_F(JobMasterTest, AServerThatDiesWhileItOpensTheJobIsNotWaitedFor) {
  plan_.replicas = 2;
  begin(false);
  for (TestServer* server : servers_.live())
    master_->join(server->info(), [server](const Result<ServerJoinReply>& r) {
      if (r.is_ok()) server->id = r.value().server;
    });
  clock_.advance(kMillisecond);  // they are asked to open it now
  EXPECT_EQ(master_->status().state, "loading");
  kill("server-1");
  clock_.advance(100 * kMillisecond);
  EXPECT_EQ(train_all(join("w0")), 5U * 2);
  EXPECT_TRUE(ended_well()) << said_;
}

TEST_F(JobMasterTest, ABatchThatIsNotFiniteIsSkippedNamedAndCounted) {
  plan_.skip_limit = 0.1;
  begin();
  const WorkerId w = join("w0");
  const auto first = lease(w);
  ASSERT_TRUE(first.is_ok());
  const std::vector<BatchId> ids = batches(first.value().lease);
  LeaseRequest request;
  request.worker = w;
  request.seq = ++seq_[{w, 0}];
  request.refused = {{ids[0], "the loss is not a number"}, {ids[0], "again"}};
  request.refused.push_back({{{9, 9, 9, 9}, 9, 9}, "of nobody"});
  const auto second = ask(request);
  ASSERT_TRUE(second.is_ok());
  EXPECT_EQ(master_->status().batches_skipped, 1U);
  LeaseAnswer rest = first.value();
  rest.lease.skip_mask |= 1U << ids[0].batch;
  std::vector<BatchId> done = train(rest);
  const std::vector<BatchId> more = train(second.value());
  done.insert(done.end(), more.begin(), more.end());
  EXPECT_EQ(train_all(w, done), 5U * 2 - 1);
  ASSERT_TRUE(ended_well()) << said_;
  EXPECT_EQ(outcome_->passes[0].skipped_examples, 10U);
  const auto skipped = real_files().read(plan_.output + "/skipped.tsv", 10000);
  ASSERT_TRUE(skipped.is_ok());
  EXPECT_NE(skipped.value().find("a.tsv:"), std::string::npos) << skipped.value();
  EXPECT_NE(skipped.value().find("the loss is not a number"), std::string::npos);
}

TEST_F(JobMasterTest, TooManySkippedBatchesEndTheJobWithTheLastOne) {
  plan_.skip_limit = 0;
  begin();
  const WorkerId w = join("w0");
  LeaseRequest request;
  request.worker = w;
  request.refused = {{batches(lease(w).value().lease)[0], "a gradient is infinite"}};
  request.seq = ++seq_[{w, 0}];
  (void)ask(request);
  ASSERT_TRUE(outcome_);
  EXPECT_EQ(outcome_->status.code(), Code::kInvalid);
  EXPECT_NE(outcome_->status.message().find("a gradient is infinite"), std::string::npos);
}

TEST_F(JobMasterTest, TheLearningRateFollowsTheWorkers) {
  plan_.lr = {"linear", 1, 0};
  begin();
  const WorkerId w = join("w0");
  EXPECT_EQ(lease(w).value().lr_scale, 1.0F);
  join("w1");
  EXPECT_EQ(lease(w).value().lr_scale, 2.0F);
}

// Five blocks of 20 examples in each epoch; what the learning rate's schedule goes by.
TEST_F(JobMasterTest, ALeaseSaysHowMuchOfTheRunIsBeforeIt) {
  plan_.schedule.epochs = 2;
  begin();
  const WorkerId w = join("w0");
  std::vector<BatchId> done;
  uint32_t seen = 0;
  for (uint64_t i = 1; i <= 50 && !outcome_; ++i) {
    LeaseRequest request;
    request.worker = w;
    request.seq = i;
    request.applied = done;
    keep_alive();
    const auto answer = ask(request);
    done.clear();
    if (!answer.is_ok() || answer.value().kind != LeaseAnswer::Kind::kBlock) continue;
    const BlockId& id = answer.value().lease.id;
    EXPECT_EQ(answer.value().examples_before, id.epoch * 100U + id.block * 20U);
    done = train(answer.value());
    ++seen;
  }
  EXPECT_EQ(seen, 10U);
}

// Two members of a round; the coordinator is replaced; one of them comes back with its block, the
// other does not: it is voided, and the round goes on without it.
TEST_F(JobMasterTest, SyncRoundsAreAdoptedAndWhoDoesNotComeBackIsVoided) {
  plan_.mode = "sync";
  options_.member_lease_ns = kSecond;
  begin();
  const WorkerId a = join("a"), b = join("b");
  auto held = std::make_shared<std::optional<LeaseAnswer>>();
  LeaseRequest request;
  request.worker = a;
  request.seq = 1;
  master_->lease(request, [held](const Result<LeaseAnswer>& r) {
    if (r.is_ok()) *held = r.value();
  });
  ASSERT_TRUE(lease(b).is_ok() && held->has_value());
  const uint64_t life = master_->status().incarnation;
  const uint64_t old_round = (*held)->round.id;
  start_master();
  join_all();
  clock_.advance(100 * kMillisecond);
  keep_alive();
  EXPECT_EQ(master_->status().incarnation, life) << said_;
  JoinRequest again;
  again.name = "a";
  again.boot = 1;
  again.incarnation = life;
  HeldBlock block;
  block.id = (*held)->lease.id;
  block.round = (*held)->round;
  again.held = {block};
  WorkerId now = 0;
  master_->join(again, [&](const Result<JoinReply>& r) { now = r.is_ok() ? r.value().worker : 0; });
  clock_.advance(100 * kMillisecond);
  ASSERT_NE(now, 0U) << said_;
  EXPECT_EQ(master_->status().pending, 1U) << "its block is still its own";
  for (int i = 0; i < 10; ++i) {
    keep_alive();
    master_->report(now, {}, [](const Result<ReportAnswer>&) {});
    clock_.advance(200 * kMillisecond);
  }
  const auto done = train(**held);  // waits for nobody
  ASSERT_EQ(done.size(), 2U);
  const auto next = lease(now, done);
  ASSERT_TRUE(next.is_ok()) << said_;
  EXPECT_GT(next.value().round.id, old_round);
  again.incarnation = life + 1;
  Status status;
  master_->join(again, [&](const Result<JoinReply>& r) { status = r.status(); });
  EXPECT_EQ(status.code(), Code::kStale) << "of another life";
}

// While the totals are asked for a job has ended for its workers, not for those who wait for it.
TEST_F(JobMasterTest, AShardThatCannotBeLoadedForTheTotalsEndsTheJob) {
  options_.servers = 1;
  blocks_ = 1;
  begin();
  const WorkerId w = join("w");
  const auto answer = lease(w);
  ASSERT_TRUE(answer.is_ok());
  EXPECT_TRUE(lease(w, train(answer.value())).is_ok());  // it does not say goodbye
  pass_time(kSecond);
  ASSERT_EQ(master_->status().state, "ending") << said_;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(plan_.output + "/checkpoints"))
    if (entry.path().filename().string().starts_with("shard-"))
      std::filesystem::resize_file(entry.path(), 1);
  kill("server-0");
  join_server(servers_.start("server-0"));
  pass_time(options_.leave_deadline_ns + 5 * kSecond);
  ASSERT_TRUE(outcome_) << said_;
  EXPECT_EQ(outcome_->status.code(), Code::kCorrupt) << outcome_->status.message();
}

}  // namespace
}  // namespace flux
