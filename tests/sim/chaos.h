// Ports over a bad network, for tests of workers: requests and replies lost, doubled, delayed and
// so reordered, as a seed decides. A request is copied when it is sent, as a wire would; a caller's
// memory is never touched after its `done`. Included by tests only. On one SimExecutor.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "flux/api/job_port.h"
#include "flux/api/server.h"
#include "flux/testing/sim_executor.h"
#include "tests/sim/tiny_job.h"

namespace flux::tiny {

struct Chaos {
  double lost = 0.25;     // of requests, and again of replies
  double doubled = 0.25;  // of requests
  TimeNs delay_max = 30 * kMillisecond;
  TimeNs timeout = 400 * kMillisecond;
};

class BadNetwork {
 public:
  BadNetwork(SimExecutor* executor, const Chaos* chaos) : executor_(executor), chaos_(chaos) {}
  // Carries a request to `serve`, whose reply goes to `done`; a reply that does not come in time is
  // kUnavailable. `done` is called once.
  template <typename Reply>
  void call(const std::function<void(std::function<void(Reply)>)>& serve,
            std::function<void(Reply)> done, const Reply& timed_out) {
    auto once = std::make_shared<std::function<void(Reply)>>(std::move(done));
    const auto finish = [once](Reply reply) {
      if (const auto run = std::exchange(*once, nullptr)) run(std::move(reply));
    };
    executor_->post(chaos_->timeout, [finish, timed_out] { finish(timed_out); });
    const auto reply = [this, finish](Reply r) {
      if (executor_->random().chance(chaos_->lost)) return;
      executor_->post(delay(), [finish, r] { finish(r); });
    };
    if (executor_->random().chance(chaos_->lost)) return;
    const int copies = executor_->random().chance(chaos_->doubled) ? 2 : 1;
    for (int i = 0; i < copies; ++i) executor_->post(delay(), [serve, reply] { serve(reply); });
  }

 private:
  TimeNs delay() {
    return static_cast<TimeNs>(
        executor_->random().below(static_cast<uint64_t>(chaos_->delay_max) + 1));
  }
  SimExecutor* executor_;
  const Chaos* chaos_;
};

// What a test wants to know of the traffic of one lane.
struct Traffic {
  uint32_t pulls = 0, pushes = 0, pulls_most = 0, pushes_most = 0;  // requests under way, by batch
  uint64_t pulls_sent = 0, pushes_sent = 0, partial = 0;
};

class BadServer final : public ServerPort {
 public:
  BadServer(SimExecutor* executor, const Chaos* chaos, ServerPort* port, Traffic* traffic)
      : network_(executor, chaos), port_(port), traffic_(traffic) {}

  void pull(const PullRequest& r, std::function<void(const PullReply&)> done) override {
    struct Copy {
      PullRequest request;
      std::vector<ShardId> shards;
      std::vector<uint64_t> keys;
      std::vector<uint32_t> begin;
      std::vector<float> rows, dense;
      std::vector<float*> tables;
    };
    auto copy = std::make_shared<Copy>();
    copy->shards.assign(r.shards.begin(), r.shards.end());
    copy->begin.assign(r.keys.begin, r.keys.begin + kShards + 1);
    copy->keys.assign(r.keys.keys, r.keys.keys + copy->begin.back());
    copy->rows.resize(copy->keys.size());
    copy->tables = {copy->rows.data()};
    copy->dense.resize(16);
    copy->request = r;
    copy->request.shards = copy->shards;
    copy->request.keys = {copy->keys.data(), copy->begin.data()};
    copy->request.tables = copy->tables;
    if (r.dense != nullptr) copy->request.dense = copy->dense.data();
    ++traffic_->pulls_sent;
    traffic_->pulls_most = std::max(traffic_->pulls_most, ++traffic_->pulls);
    float* const rows = r.tables.empty() ? nullptr : r.tables[0];
    network_.call<PullReply>(
        [this, copy](const std::function<void(PullReply)>& reply) {
          port_->pull(copy->request, [reply](const PullReply& answer) { reply(answer); });
        },
        [this, copy, rows, dense = r.dense, done = std::move(done)](const PullReply& reply) {
          --traffic_->pulls;
          for (const ShardId s : reply.status.is_ok() ? copy->shards : std::vector<ShardId>()) {
            if (s >= kShards && dense != nullptr)
              std::copy(copy->dense.begin(), copy->dense.begin() + kDense + 1, dense);
            if (s < kShards)
              std::copy(copy->rows.begin() + copy->begin[s],
                        copy->rows.begin() + copy->begin[s + 1], rows + copy->begin[s]);
          }
          done(reply);
        },
        {Status(Code::kUnavailable, "timed out")});
  }

  void push(const PushRequest& r, std::function<void(const PushReply&)> done) override {
    struct Copy {
      PushRequest request;
      std::vector<ShardId> shards;
      std::vector<ShardEpoch> epochs;
      std::vector<uint64_t> keys;
      std::vector<uint32_t> begin, counts;
      std::vector<float> rows, dense;
      std::vector<const float*> tables;
      SyncStep step;
    };
    auto copy = std::make_shared<Copy>();
    copy->shards.assign(r.shards.begin(), r.shards.end());
    copy->epochs.assign(r.epochs.begin(), r.epochs.end());
    copy->begin.assign(r.keys.begin, r.keys.begin + kShards + 1);
    copy->keys.assign(r.keys.keys, r.keys.keys + copy->begin.back());
    copy->counts.assign(r.counts, r.counts + copy->begin.back());
    copy->rows.assign(r.tables[0], r.tables[0] + copy->begin.back());
    copy->dense.assign(r.dense, r.dense + kDense + 1);
    copy->tables = {copy->rows.data()};
    copy->request = r;
    copy->request.shards = copy->shards;
    copy->request.epochs = copy->epochs;
    copy->request.keys = {copy->keys.data(), copy->begin.data()};
    copy->request.counts = copy->counts.data();
    copy->request.tables = copy->tables;
    copy->request.dense = copy->dense.data();
    if (r.step != nullptr) {
      copy->step = *r.step;
      copy->request.step = &copy->step;
    }
    ++traffic_->pushes_sent;
    traffic_->pushes_most = std::max(traffic_->pushes_most, ++traffic_->pushes);
    PushReply timed_out;
    timed_out.status = Status(Code::kUnavailable, "timed out");
    network_.call<PushReply>(
        [this, copy](const std::function<void(PushReply)>& reply) {
          port_->push(copy->request, [this, copy, reply](const PushReply& answer) {
            for (const ShardAnswer& a : answer.answers)
              if (a.answer == Answer::kPartial) ++traffic_->partial;
            reply(answer);
          });
        },
        [this, done = std::move(done)](const PushReply& reply) {
          --traffic_->pushes;
          done(reply);
        },
        timed_out);
  }

 private:
  BadNetwork network_;
  ServerPort* port_;
  Traffic* traffic_;
};

class BadJob final : public JobPort {
 public:
  BadJob(SimExecutor* executor, const Chaos* chaos, JobPort* job)
      : network_(executor, chaos), job_(job) {}
  void join(JoinRequest r, std::function<void(Result<JoinReply>)> done) override {
    call<Result<JoinReply>>([this, r](auto reply) { job_->join(r, reply); }, std::move(done));
  }
  void lease(LeaseRequest r, std::function<void(Result<LeaseAnswer>)> done) override {
    call<Result<LeaseAnswer>>([this, r](auto reply) { job_->lease(r, reply); }, std::move(done));
  }
  void report(WorkerId w, WorkerReport r, std::function<void(Result<ReportAnswer>)> done) override {
    call<Result<ReportAnswer>>([this, w, r](auto reply) { job_->report(w, r, reply); },
                               std::move(done));
  }
  void map(std::function<void(Result<ClusterMap>)> done) override {
    call<Result<ClusterMap>>([this](auto reply) { job_->map(reply); }, std::move(done));
  }
  void geometry(uint64_t hash, std::function<void(Result<std::string>)> done) override {
    call<Result<std::string>>([this, hash](auto reply) { job_->geometry(hash, reply); },
                              std::move(done));
  }
  void leave(LeaseRequest last, WorkerReport r, Status why,
             std::function<void(Status)> done) override {
    if (perfect) return job_->leave(last, r, why, std::move(done));
    network_.call<Status>([this, last, r, why](auto reply) { job_->leave(last, r, why, reply); },
                          std::move(done), Status(Code::kUnavailable, "timed out"));
  }
  bool silent = false;   // from now on nothing is answered
  bool perfect = false;  // from now on everything is, at once

 private:
  template <typename Reply, typename Serve>
  void call(Serve serve, std::function<void(Reply)> done) {
    if (perfect) return serve(std::move(done));
    network_.call<Reply>(
        [this, serve](const std::function<void(Reply)>& reply) {
          if (!silent) serve(reply);
        },
        std::move(done), Reply(Status(Code::kUnavailable, "timed out")));
  }
  BadNetwork network_;
  JobPort* job_;
};

}  // namespace flux::tiny
