// For tests only: a few servers that replicate to each other through links that delay, reorder,
// repeat and lose messages, on one clock that the test moves. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "flux/base/random.h"
#include "flux/client/test_executor.h"
#include "flux/server/server.h"
#include "flux/server/test_push.h"

namespace flux {

struct LinkFaults {
  TimeNs delay_max = 0;  // 0: answers come inside the call
  double lose = 0;       // of requests, and as many of replies
  double twice = 0;
  TimeNs timeout = kSecond;
};

class TestCluster {
 public:
  explicit TestCluster(uint64_t seed = 1) : random(seed) {}

  // Server `i` of the cluster; unset places: nothing is there.
  Server* add(const Assignments& places, const ServerOptions& from = test_options()) {
    const auto self = static_cast<ServerId>(servers.size());
    ServerOptions o = from;
    o.places = places;
    o.places->servers = addresses();
    o.self = self;
    o.executor = &clock;
    o.seed = random.next();
    o.reach = [this, self](const std::string& address) -> std::shared_ptr<ReplicaPort> {
      return std::make_shared<Link>(this, self, static_cast<ServerId>(std::stoul(address)));
    };
    o.log = [this](const std::string& line) { said.push_back(line); };
    servers.push_back(std::move(Server::create(o)).value());
    return servers.back().get();
  }
  static std::vector<std::string> addresses() { return {"0", "1", "2", "3"}; }
  static std::vector<ShardId> every_shard() { return {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; }
  // All shards in one role.
  static Assignments all(ReplicaRole role, ServerId backup = kNoServer, ShardEpoch epoch = {1, 1},
                         uint64_t at_op = kAnyOp) {
    Assignments places;
    for (const ShardId id : every_shard())
      places.shards.push_back({id, epoch, role, backup, at_op});
    places.servers = addresses();
    return places;
  }
  // Server 0 leads, 1 follows; pass 0 is open.
  void add_pair(const ServerOptions& from = test_options()) {
    add(all(ReplicaRole::kPrimary, 1), from);
    add(all(ReplicaRole::kBackup), from);
    open(0);
  }
  // Server 0 leads alone, 1 has nothing; pass 0 is open.
  void add_alone(const ServerOptions& from = test_options()) {
    add(all(ReplicaRole::kPrimary), from);
    add({}, from);
    open(0);
  }
  void open(ServerId i) {
    std::optional<Status> status;
    servers[i]->open_pass(servers[i]->primaries(), 0, kGeometry,
                          [&](const Status& s) { status = s; });
    FLUX_CHECK(clock.run_until([&] { return status.has_value(); }), "a pass opens");
    FLUX_CHECK(status->is_ok(), "{}", status->message());
  }
  void kill(ServerId i) { dead.insert(i); }
  void cut(ServerId from, ServerId to) { cuts.insert({from, to}); }
  bool reaches(ServerId from, ServerId to) const {
    return !dead.contains(from) && !dead.contains(to) && !cuts.contains({from, to});
  }

  TestExecutor clock;
  Random random;
  LinkFaults faults;
  std::vector<std::shared_ptr<Server>> servers;
  std::set<ServerId> dead;
  std::set<std::pair<ServerId, ServerId>> cuts;
  std::vector<std::string> said;
  uint64_t messages = 0;
  bool installs = true;  // false: copies never arrive

 private:
  class Link final : public ReplicaPort {
   public:
    Link(TestCluster* cluster, ServerId from, ServerId to)
        : cluster_(cluster), from_(from), to_(to) {}

    void replicate(const ReplicateRequest& request,
                   std::function<void(const ReplicateReply&)> done) override {
      ++cluster_->messages;
      const auto copy = std::make_shared<Incoming>(request, nullptr);
      call<ReplicateReply>(
          std::move(done), {lost(), {}},
          [copy](Server* server, const std::function<void(const ReplicateReply&)>& told) {
            server->replicate(copy->request, told);
          });
    }
    void install(const InstallRequest& request, std::function<void(Status)> done) override {
      if (!cluster_->installs) return;
      const auto bytes =
          std::make_shared<std::vector<std::byte>>(request.bytes.begin(), request.bytes.end());
      call<Status>(
          [done](const Status& status) { done(status); }, lost(),
          [request, bytes](Server* server, const std::function<void(const Status&)>& told) {
            InstallRequest mine = request;
            mine.bytes = *bytes;
            server->install(mine, told);
          });
    }

   private:
    static Status lost() { return Status(Code::kUnavailable, "lost on the way"); }
    TimeNs delay() const {
      const TimeNs max = cluster_->faults.delay_max;
      return max == 0 ? 0 : static_cast<TimeNs>(cluster_->random.below(static_cast<uint64_t>(max)));
    }
    bool loses() const { return cluster_->random.chance(cluster_->faults.lose); }

    template <typename Reply, typename Deliver>
    void call(std::function<void(const Reply&)> done, Reply failed, const Deliver& deliver) {
      if (cluster_->faults.delay_max == 0) {
        if (!cluster_->reaches(from_, to_)) return done(failed);
        return deliver(cluster_->servers[to_].get(), done);
      }
      const auto answered = std::make_shared<bool>(false);
      const std::function<void(const Reply&)> once = [answered, done](const Reply& reply) {
        if (std::exchange(*answered, true)) return;
        done(reply);
      };
      cluster_->clock.post(cluster_->faults.timeout, [once, failed] { once(failed); });
      const int times = cluster_->random.chance(cluster_->faults.twice) ? 2 : 1;
      for (int i = 0; i < times; ++i)
        cluster_->clock.post(delay(), [this, keep = cluster_, from = from_, to = to_, once, deliver,
                                       gone = loses()] {
          if (gone || !keep->reaches(from, to)) return;
          deliver(keep->servers[to].get(),
                  [keep, from, to, once, back = delay(), away = loses()](const Reply& reply) {
                    if (away) return;
                    keep->clock.post(back, [keep, from, to, once, reply] {
                      if (keep->reaches(to, from)) once(reply);
                    });
                  });
        });
    }

    TestCluster* const cluster_;
    const ServerId from_, to_;
  };
};

// One push of every shard to whoever leads, as a worker keeps it: answers, receipt, what became of
// it.
struct Pushed {
  Pushed(uint64_t seed, uint32_t number, const Server& server, size_t keys = 40)
      : id(test_batch(number)), data(seed, id, keys, server) {}
  void send(Server* server) {
    for (size_t i = 0; i < data.shards.size(); ++i)
      data.epochs[i] = server->state(data.shards[i]).epoch;
    answers.clear();
    receipt = 0;
    server->push(data.request, [&](const PushReply& reply) {
      for (const ShardAnswer& a : reply.answers) answers.push_back(a.answer);
      receipt = reply.receipt;
    });
    confirmed.reset();
    server->confirm(kLife, receipt, [this](const Status& status) { confirmed = status; });
  }
  bool all_have_it() const {
    return !answers.empty() && std::all_of(answers.begin(), answers.end(), [](Answer a) {
      return a == Answer::kApplied || a == Answer::kDuplicate;
    });
  }
  bool replicated() const { return all_have_it() && confirmed && confirmed->is_ok(); }

  BatchId id;
  TestPush data;
  std::vector<Answer> answers;
  uint64_t receipt = 0;
  std::optional<Status> confirmed;
};

// The replica without its epoch and role: log head, passes and ledger.
inline std::string history(const Server& server, ShardId shard) {
  const ShardReplica replica = server.replica(shard);
  ByteWriter out;
  out.put(replica.op());
  out.put(replica.stream_hash());
  for (const auto& [pass, geometry] : replica.passes()) {
    out.put(pass);
    out.put(geometry);
  }
  replica.ledger().encode(&out);
  return out.take();
}
inline bool equal_replicas(const Server& a, const Server& b, const std::vector<ShardId>& shards) {
  for (const ShardId id : shards)
    if (history(a, id) != history(b, id)) return false;
  return a.content_hash(shards) == b.content_hash(shards);
}

// Occurrences of each key, as a plain map counts them.
inline std::map<Key, uint64_t> counts_of(const std::vector<std::unique_ptr<Pushed>>& pushes) {
  std::map<Key, uint64_t> sum;
  for (const auto& push : pushes)
    for (size_t i = 0; i < push->data.keys.size(); ++i)
      sum[push->data.keys[i]] += push->data.counts[i];
  return sum;
}
inline std::map<Key, uint64_t> counts_of(const Server& server, const std::vector<ShardId>& shards) {
  std::map<Key, uint64_t> sum;
  server.for_each_row(shards, [&](Key key, uint32_t count) { sum[key] += count; });
  return sum;
}

}  // namespace flux
