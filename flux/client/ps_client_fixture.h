// PsClient over ports that answer when and what the test says, in time that the test moves.
// Included by tests of PsClient only.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "flux/client/ps_client.h"

namespace flux {

class ManualExecutor final : public Executor {
 public:
  TimeNs now_ns() const override { return now_; }
  void post(TimeNs delay_ns, std::function<void()> task) override {
    tasks_.emplace(now_ + delay_ns, std::move(task));
  }
  void advance_to(TimeNs time) {
    now_ = time;
    while (!tasks_.empty() && tasks_.begin()->first <= now_) {
      auto node = tasks_.extract(tasks_.begin());
      node.mapped()();
    }
  }
  size_t tasks() const { return tasks_.size(); }

 private:
  TimeNs now_ = 0;
  std::multimap<TimeNs, std::function<void()>> tasks_;
};

class FakeServer final : public ServerPort {
 public:
  struct Sent {
    PushClaim claim;
    std::vector<ShardId> shards;
    std::vector<ShardEpoch> epochs;
    const float* dense = nullptr;
    uint64_t examples = 0;
    const SyncStep* step = nullptr;
    std::map<uint64_t, uint32_t> counts;  // by key
    std::map<uint64_t, float> gradient;
    std::function<void(const PushReply&)> done;
    void answer(Answer answer, uint64_t receipt = 0) const {
      PushReply reply;
      reply.receipt = receipt;
      for (const ShardId shard : shards) reply.answers.push_back({shard, answer, 0, {}});
      done(reply);
    }
  };
  struct Asked {
    std::vector<ShardId> shards;
    uint64_t incarnation = 0;
    float* dense = nullptr;
    std::function<void(const PullReply&)> done;
  };
  void pull(const PullRequest& r, std::function<void(const PullReply&)> done) override {
    asked.push_back({{r.shards.begin(), r.shards.end()}, r.incarnation, r.dense, std::move(done)});
    if (pull_at_once) asked.back().done({*pull_at_once});
  }
  void push(const PushRequest& r, std::function<void(const PushReply&)> done) override {
    sent.push_back({r.claim,
                    {r.shards.begin(), r.shards.end()},
                    {r.epochs.begin(), r.epochs.end()},
                    r.dense,
                    r.examples,
                    r.step,
                    {},
                    {},
                    std::move(done)});
    if (r.keys.keys != nullptr)
      for (uint32_t i = r.keys.begin[0]; i < r.keys.begin[2]; ++i) {
        sent.back().counts[r.keys.keys[i]] = r.counts[i];
        sent.back().gradient[r.keys.keys[i]] = r.tables[0][i];
      }
    if (at_once) sent.back().answer(*at_once);
  }

  struct Confirm {
    uint64_t incarnation = 0;
    uint64_t receipt = 0;
    std::function<void(Status)> done;
  };
  void confirm(uint64_t incarnation, uint64_t receipt, std::function<void(Status)> done) override {
    confirms.push_back({incarnation, receipt, std::move(done)});
  }

  std::deque<Sent> sent;
  std::deque<Confirm> confirms;
  std::optional<Answer> at_once;
  std::deque<Asked> asked;
  std::optional<Status> pull_at_once;
};

struct FakeCoordinator {
  FetchRoute fetch() {
    return [this](const std::function<void(Result<ClusterMap>)>& done) {
      ++asked;
      done(map());
    };
  }
  ClusterMap map() const { return {now, addresses, version}; }
  ShardRoute now{{0, 0, 1}, {{1, 1}, {1, 1}, {1, 1}}};
  std::vector<std::string> addresses{"here", "there"};
  uint64_t version = 1;
  int asked = 0;
};

class PsClientTest : public testing::Test {
 protected:
  PsClientTest() {
    options_.incarnation = 42;
    options_.session.answer_timeout_ns = 100;
    options_.session.timeout_max_ns = 400;
    options_.session.retry_ns = 5;
    options_.session.retry_max_ns = 20;
    client_.emplace(options_, coordinator_.map(), reach(), coordinator_.fetch(), &executor_);
  }
  // The test's own servers: nobody drops them.
  ReachServer reach() {
    return [this](ServerId server, const std::string&) {
      return std::shared_ptr<ServerPort>(std::shared_ptr<void>(), &servers_[server]);
    };
  }
  void push(uint8_t batch) {
    PushWork work;
    work.ids = {{{0, 0, 0, 0}, batch, 32}};
    work.geometry = 7;
    work.dense = gradient_;
    work.bytes = 4;
    work.released = [this, batch] { released_.push_back(batch); };
    client_->push(std::move(work));
  }

  PsClientOptions options_;
  FakeServer servers_[2];
  FakeCoordinator coordinator_;
  ManualExecutor executor_;
  std::optional<PsClient> client_;
  float gradient_[1] = {1};
  std::vector<int> released_;
};

}  // namespace flux
