// A tiny job for tests of workers: a data set in memory, a logistic regression with SGD, real
// servers, and a small coordinator that leases as the real one does. Included by tests only.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "flux/api/dense_shards.h"
#include "flux/api/job_port.h"
#include "flux/base/executor.h"
#include "flux/base/offload.h"
#include "flux/base/random.h"
#include "flux/client/key_plan.h"
#include "flux/cluster/block_queue.h"
#include "flux/cluster/sync_rounds.h"
#include "flux/metrics/metric_set.h"
#include "flux/nn/graph.h"
#include "flux/server/server.h"
#include "flux/worker/agent.h"

namespace flux::tiny {

constexpr uint32_t kSlots = 3, kDense = 2, kShards = 4;
constexpr float kRate = 0.5F;
constexpr uint64_t kLife = 3;

struct Example {
  float label;
  float dense[kDense];
  uint64_t keys[kSlots];
};

inline std::vector<Example> make_examples(size_t n) {
  Random random(17);
  std::vector<Example> out(n);
  for (Example& e : out) {
    for (uint64_t& key : e.keys) key = random.below(60);
    for (float& x : e.dense) x = static_cast<float>(random.normal());
    e.label = random.chance(e.keys[0] % 2 == 0 ? 0.9 : 0.1) ? 1.0F : 0.0F;
  }
  return out;
}

class Data final : public Dataset {
 public:
  // Blocks of `block` records, in order if not shuffled.
  Data(size_t n, uint32_t batch, uint32_t block, uint64_t shuffle = 0)
      : Data(make_examples(n), batch, block, shuffle) {}
  Data(std::vector<Example> examples, uint32_t batch, uint32_t block, uint64_t shuffle = 0)
      : examples_(std::make_shared<const std::vector<Example>>(std::move(examples))) {
    const size_t n = examples_->size();
    geometry_.format = "memory";
    geometry_.batch_size = batch;
    geometry_.shuffle_seed = shuffle;
    geometry_.files = {{"memory", n, n, flux::Packing::kPlain}};
    for (uint64_t at = 0; at < n; at += block)
      geometry_.blocks.push_back({0, at, std::min<uint64_t>(n, at + block), at,
                                  static_cast<uint32_t>(std::min<uint64_t>(block, n - at))});
  }
  const Geometry& geometry() const override { return geometry_; }
  const Features& features() const override { return features_; }
  Result<std::unique_ptr<BlockReader>> open_block(uint32_t block, uint32_t epoch) const override {
    return std::unique_ptr<BlockReader>(
        std::make_unique<Reader>(examples_, geometry_, block, epoch));
  }
  const std::vector<Example>& examples() const { return *examples_; }
  uint32_t blocks() const { return static_cast<uint32_t>(geometry_.blocks.size()); }

 private:
  class Reader final : public BlockReader {
   public:
    Reader(std::shared_ptr<const std::vector<Example>> examples, const Geometry& g, uint32_t block,
           uint32_t epoch)
        : examples_(std::move(examples)),
          geometry_(g),
          block_(block),
          order_(block_order(g, block, epoch)) {}
    Status read_batch(uint32_t batch, Batch* out) const override {
      *out = Batch{};
      out->size = geometry_.batch_records(block_, batch);
      out->slots = kSlots;
      out->dense = kDense;
      for (uint32_t i = 0; i < out->size; ++i) {
        const Example& e = (*examples_)[geometry_.blocks[block_].first_record +
                                        order_[batch * geometry_.batch_size + i]];
        out->labels.push_back(e.label);
        out->dense_values.insert(out->dense_values.end(), e.dense, e.dense + kDense);
        out->keys.insert(out->keys.end(), e.keys, e.keys + kSlots);
      }
      return Status::ok();
    }

   private:
    std::shared_ptr<const std::vector<Example>> examples_;
    const Geometry geometry_;
    uint32_t block_;
    std::vector<uint32_t> order_;
  };
  std::shared_ptr<const std::vector<Example>> examples_;
  const Features features_{kSlots, kDense, {}, false, {"label"}, false};
  Geometry geometry_;
};

inline std::shared_ptr<const Graph> logistic_regression() {
  GraphBuilder builder({kSlots, kDense, {{"weight", 1}}});
  const auto add = [&](const char* name, const char* op, std::vector<std::string> inputs,
                       std::map<std::string, AttrValue> attrs) {
    const Status status = builder.add({name, op, std::move(inputs), std::move(attrs), ""});
    EXPECT_TRUE(status.is_ok()) << status.message();
  };
  add("sparse", "embedding", {},
      {{"table", std::string("weight")}, {"combine", std::string("sum")}});
  add("linear", "fc", {"dense"}, {{"units", int64_t{1}}});
  add("logit", "add", {"sparse", "linear"}, {});
  add("loss", "logistic_loss", {"logit", "label"}, {});
  auto graph = builder.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().message();
  return graph.value();
}

// Servers that own every second (third, ...) shard.
struct Servers {
  explicit Servers(uint32_t count, uint64_t geometry) {
    const uint32_t all = kShards + dense_shard_count(graph->parameter_count());
    for (ShardId s = 0; s < all; ++s) route.server.push_back(s % count);
    route.epoch.assign(all, {1, 0});
    for (uint32_t i = 0; i < count; ++i) {
      ServerOptions o;
      o.shards = kShards;
      o.tables.resize(1);
      o.tables[0].name = "weight";
      o.tables[0].dim = 1;
      o.tables[0].init = "zero";
      o.tables[0].optimizer = {.rule = "sgd", .lr = kRate};
      o.dense_optimizer = {.rule = "sgd", .lr = kRate};
      o.parameters = graph->parameter_count();
      o.incarnation = kLife;
      o.epoch = {1, 0};
      Assignments places;
      for (ShardId s = 0; s < all; ++s)
        if (route.server[s] == i)
          places.shards.push_back({s, o.epoch, ReplicaRole::kPrimary, kNoServer, kAnyOp});
      o.places = places;
      servers.push_back(std::move(Server::create(o)).value());
      servers.back()->init_dense(graph->initial_parameters(1));
      servers.back()->open_pass(servers.back()->primaries(), 0, geometry, [](const Status& status) {
        EXPECT_TRUE(status.is_ok()) << status.message();
      });
    }
  }
  std::vector<float> dense() const {
    std::vector<float> out(graph->parameter_count());
    std::vector<float> row(1);
    std::vector<float*> rows = {row.data()};
    const std::vector<uint32_t> begin(kShards + 1, 0);
    for (const auto& server : servers) {
      const AdminCall mine = server->primaries();
      server->pull({kLife, mine.shards, {nullptr, begin.data()}, rows, out.data()},
                   [](const PullReply& reply) { EXPECT_TRUE(reply.status.is_ok()); });
    }
    return out;
  }
  // The weight of every key of the data.
  std::map<uint64_t, float> weights(const Data& data) const {
    std::vector<uint64_t> keys;
    for (const Example& e : data.examples()) keys.insert(keys.end(), e.keys, e.keys + kSlots);
    KeyPlan plan(kShards);
    plan.build(keys);
    std::vector<float> rows(plan.unique()), dense(graph->parameter_count());
    std::vector<float*> out = {rows.data()};
    for (const auto& server : servers) {
      const AdminCall mine = server->primaries();
      server->pull({kLife, mine.shards, plan.sharded(), out, dense.data()},
                   [](const PullReply& reply) { EXPECT_TRUE(reply.status.is_ok()); });
    }
    std::map<uint64_t, float> found;
    for (size_t i = 0; i < keys.size(); ++i) found[keys[i]] = rows[plan.index()[i]];
    return found;
  }
  // Every occurrence of every key was counted `epochs` times, on every row of every server.
  void expect_counts(const Data& data, uint32_t epochs) const {
    std::map<Key, uint32_t> expected, found;
    for (const Example& e : data.examples())
      for (const uint64_t key : e.keys) expected[key] += epochs;
    for (const auto& server : servers) {
      server->for_each_row(server->primaries().shards,
                           [&](Key key, uint32_t count) { found[key] = count; });
      for (const DenseExamples& dense : server->totals().dense) {
        if (!dense.any()) continue;
        EXPECT_EQ(dense.min, data.examples().size() * epochs);
        EXPECT_EQ(dense.max, data.examples().size() * epochs);
      }
    }
    EXPECT_EQ(found, expected);
  }

  std::shared_ptr<const Graph> graph = logistic_regression();
  ShardRoute route;
  std::vector<std::shared_ptr<Server>> servers;
};

// One worker's lane after the other on the executor that everything else runs on.
class TaskOffload final : public Offload {
 public:
  explicit TaskOffload(Executor* executor) : executor_(executor) {}
  void run(std::function<void()> work, std::function<void()> done) override {
    executor_->post(kMillisecond, [work = std::move(work), done = std::move(done)] {
      work();
      done();
    });
  }

 private:
  Executor* executor_;
};

// The small coordinator: sections one after the other, an evaluation if asked for, the end. Held
// requests, numbered repeats, rounds. On one executor.
class Master final : public JobPort {
 public:
  Master(Executor* executor, const Data* data, const Servers* servers, uint16_t epochs, bool sync,
         bool evaluate = false)
      : executor_(executor),
        data_(data),
        servers_(servers),
        epochs_(epochs),
        sync_(sync),
        evaluate_(evaluate) {
    begin(0);
  }
  void join(JoinRequest request, std::function<void(Result<JoinReply>)> done) override {
    if (!by_boot.contains(request.boot)) {
      by_boot[request.boot] = static_cast<WorkerId>(by_boot.size() + 1);
      if (sync_) rounds_.add_worker(by_boot[request.boot], 1);
    }
    JoinReply reply;
    reply.worker = by_boot[request.boot];
    reply.incarnation = kLife;
    reply.map.route = servers_->route;
    reply.map.servers.assign(servers_->servers.size(), "here");
    reply.report_every_ms = 50;
    post([done = std::move(done), reply] { done(reply); });
  }
  void lease(LeaseRequest r, std::function<void(Result<LeaseAnswer>)> done) override {
    if (gone_.contains(r.worker))
      return post([done] { done(error(Code::kStale, "not a member any more")); });
    acknowledge(r.applied, r.evaluated);
    Slot& slot = slots_[{r.worker, r.lane}];
    if (r.seq < slot.seq) return post([done] { done(LeaseAnswer{}); });
    if (r.seq == slot.seq && slot.answered)
      return post([done, answer = slot.answer] { done(answer); });
    if (slot.done)
      post([old = slot.done] { old(error(Code::kUnavailable, "asked again meanwhile")); });
    const bool fresh = r.seq != slot.seq;
    slot.seq = r.seq;
    slot.answered = false;
    slot.done = std::move(done);
    if (fresh && sync_) rounds_.wait(r.worker, r.lane);
    pump();
  }
  void report(WorkerId, WorkerReport report,
              std::function<void(Result<ReportAnswer>)> done) override {
    last_report = std::move(report);
    if (on_report) on_report(last_report);
    ReportAnswer answer;
    answer.stop = stopped;
    post([done = std::move(done), answer] { done(answer); });
  }
  void map(std::function<void(Result<ClusterMap>)> done) override {
    ClusterMap map;
    map.route = servers_->route;
    map.servers.assign(servers_->servers.size(), "here");
    post([done = std::move(done), map] { done(map); });
  }
  void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) override {
    ++geometries_asked;
    Result<std::string> json = error(Code::kNotFound, "no such geometry");
    if (hash == data_->geometry().hash()) json = data_->geometry().to_json();
    post([done = std::move(done), json] { done(json); });
  }
  void leave(LeaseRequest last, WorkerReport report, Status why,
             std::function<void(Status)> done) override {
    gone_.insert(last.worker);
    std::erase_if(slots_, [&](const auto& slot) { return slot.first.first == last.worker; });
    acknowledge(last.applied, last.evaluated);
    last_report = std::move(report);
    left.push_back(std::move(why));
    if (sync_) {
      for (const auto& gone : rounds_.remove_worker(last.worker))
        for (const auto& server : servers_->servers)
          EXPECT_TRUE(server->void_member(server->primaries(), gone.round, gone.block).is_ok());
    }
    queue_->release(last.worker, false);
    pump();
    post([done = std::move(done)] { done(Status::ok()); });
  }
  bool complete() const { return complete_; }
  void stop() {
    stopped = true;
    pump();
  }
  // Batches of this section that all shards have and no worker told us of.
  size_t unsaid() const {
    size_t all = 0;
    const std::vector<uint32_t> masks = marked(queue_->section());
    for (uint32_t b = 0; b < data_->blocks(); ++b)  // a full block has every bit
      all += static_cast<size_t>(
          std::popcount(masks[b] & batch_mask(data_->geometry().batches_in(b))));
    return all - told_.size();
  }
  // Trains what is left of the same job again, by new workers.
  void go_on() {
    stopped = false;
    stop_after = 0;
    slots_.clear();
    const BlockId section = queue_->section();
    begin(section.epoch);
  }

  std::map<uint64_t, WorkerId> by_boot;
  WorkerReport last_report;
  std::function<void(const WorkerReport&)> on_report;
  std::vector<Status> left;
  bool stopped = false;
  size_t stop_after = 0;  // acknowledged batches; 0: never
  int geometries_asked = 0;
  MetricSet metrics;  // of the evaluation
  std::map<BatchId, int> evaluated;

 private:
  struct Slot {
    uint64_t seq = 0;
    bool answered = true;
    LeaseAnswer answer;
    std::function<void(Result<LeaseAnswer>)> done;
  };
  void post(std::function<void()> task) { executor_->post(0, std::move(task)); }
  void begin(uint16_t epoch) {
    std::vector<uint8_t> batches;
    for (uint32_t b = 0; b < data_->blocks(); ++b)
      batches.push_back(static_cast<uint8_t>(data_->geometry().batches_in(b)));
    std::vector<uint32_t> order(batches.size());
    std::iota(order.begin(), order.end(), 0U);
    const BlockId section{0, 0, epoch, 0};
    queue_.emplace(section, batches, order);
    if (epoch < epochs_) queue_->recompute(marked(section), true);
  }
  std::vector<uint32_t> marked(const BlockId& section) const {
    std::vector<uint32_t> all(data_->blocks(), ~0U);
    for (const auto& server : servers_->servers) {
      const auto mask =
          server->marked(server->primaries(), section, data_->blocks(), false).value();
      for (size_t b = 0; b < all.size(); ++b) all[b] &= mask[b];
    }
    return all;
  }
  void acknowledge(const std::vector<BatchId>& applied, const std::vector<EvalReport>& reports) {
    for (const BatchId& id : applied) {
      queue_->batch_applied(id, executor_->now_ns());
      told_.insert(id);
    }
    if (stop_after > 0 && told_.size() >= stop_after) stopped = true;
    for (const EvalReport& r : reports) {
      if (evaluated[r.id]++ == 0) {
        EXPECT_TRUE(metrics.add_encoded(r.scored).is_ok());
      }
      queue_->batch_applied(r.id, executor_->now_ns());
    }
    while (!complete_ && queue_->all_applied()) {
      const BlockId section = queue_->section();
      if (section.epoch < epochs_) {
        queue_->recompute(marked(section), true);
        EXPECT_TRUE(queue_->all_applied()) << "a worker's hint was wrong";
      }
      if (section.epoch + 1 < epochs_ + (evaluate_ ? 1 : 0))
        begin(static_cast<uint16_t>(section.epoch + 1));
      else
        complete_ = true;
    }
    pump();
  }
  void answer(Slot* slot, const LeaseAnswer& what) {
    slot->answered = true;
    slot->answer = what;
    post([done = std::exchange(slot->done, nullptr), what] { done(what); });
  }
  void pump() {
    const bool evaluating = queue_->section().epoch >= epochs_;
    if (sync_ && !evaluating && !complete_ && !stopped) return pump_sync();
    for (auto& [who, slot] : slots_) {
      if (slot.answered) continue;
      LeaseAnswer given;
      given.geometry = data_->geometry().hash();
      if (complete_ || stopped) {
        given.kind = LeaseAnswer::Kind::kEnd;
        given.reason = stopped ? "stopped" : "complete";
      } else if (queue_->lease(who.first, executor_->now_ns(), &given.lease)) {
        given.kind = evaluating ? LeaseAnswer::Kind::kEvaluate : LeaseAnswer::Kind::kBlock;
      } else {
        continue;
      }
      answer(&slot, given);
    }
  }
  void pump_sync() {
    SyncRound round;
    for (const auto& given : rounds_.form(&*queue_, executor_->now_ns(), &round)) {
      LeaseAnswer block;
      block.kind = LeaseAnswer::Kind::kBlock;
      block.lease = given.lease;
      block.geometry = data_->geometry().hash();
      block.round = round;
      answer(&slots_[{given.worker, given.lane}], block);
    }
  }

  Executor* executor_;
  const Data* data_;
  const Servers* servers_;
  uint16_t epochs_;
  bool sync_, evaluate_;
  bool complete_ = false;
  std::optional<BlockQueue> queue_;
  std::set<BatchId> told_;
  std::set<WorkerId> gone_;
  SyncRounds rounds_;
  std::map<std::pair<WorkerId, uint32_t>, Slot> slots_;
};

// A port that somebody else owns.
class Straight final : public ServerPort {
 public:
  explicit Straight(ServerPort* port) : port_(port) {}
  void pull(const PullRequest& r, std::function<void(const PullReply&)> done) override {
    port_->pull(r, std::move(done));
  }
  void push(const PushRequest& r, std::function<void(const PushReply&)> done) override {
    port_->push(r, std::move(done));
  }

 private:
  ServerPort* port_;
};

}  // namespace flux::tiny
