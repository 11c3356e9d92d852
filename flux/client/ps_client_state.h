// The inside of PsClient; included by its .cc files only. Pulls and the map are in ps_client.cc,
// pushes in ps_client_push.cc. Threads: the client's one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flux/client/ps_client.h"

namespace flux {

class PsClient::State : public std::enable_shared_from_this<PsClient::State> {
 public:
  State(const PsClientOptions& options, ClusterMap map, ReachServer reach, FetchRoute fetch_route,
        Executor* executor);

  void pull(PullWork work, std::function<void(Status)> done);
  void push(PushWork work);
  void set_map(ClusterMap map);
  bool has_room() const;
  size_t in_flight() const { return flights_.size(); }
  const Status& status() const { return status_; }
  const PushSession& session() const { return session_; }
  const LatencyHistogram& push_times() const { return push_times_; }
  const AgeHistogram& push_ages() const { return push_ages_; }
  void on_failure(std::function<void()> failed) { failed_ = std::move(failed); }
  std::string waits_for_pull() const;
  std::string waits_for_push() const;
  std::vector<ServerId> suspects(TimeNs idle_since) const;

 private:
  using ShardList = std::shared_ptr<const std::vector<ShardId>>;
  // The shards of one server, listed once per change of the map.
  struct Owner {
    ServerId server = 0;
    ShardList sparse;
    std::vector<ShardList> dense, all;  // by phase: its dense shards; those and the sparse ones
  };
  struct Pull {
    PullWork work;
    std::function<void(Status)> done;
    TimeNs started = 0;
    TimeNs backoff = 0;
    TimeNs stale_since = -1;  // a server does not know the incarnation
    uint32_t calls = 0;       // ports that may write
    uint32_t retries = 0;     // parts that wait for their time
    Status failure;
  };
  using PullPtr = std::shared_ptr<Pull>;
  // One request of a pull.
  struct PullPart : ServerPorts::Call {
    PullPart(PullPtr of, ServerId at, ShardList some)
        : Call(Kind::kPull, true), pull(std::move(of)), server(at), shards(std::move(some)) {}
    PullPtr pull;
    ServerId server;
    ShardList shards;
  };
  // A part of a pull that is asked again by time, or when a new map comes.
  struct Waiting {
    PullPtr pull;
    ServerId server = 0;
    ShardList shards;
    bool over = false;
  };
  // A push whose buffers may still be read.
  struct Flight {
    PushWork work;
    TimeNs started = 0;
    uint32_t calls = 0;  // ports that may read
    bool applied = false;
    bool complete = false;  // every shard has it replicated
  };
  using FlightPtr = std::shared_ptr<Flight>;
  // One request of a push; its lists live until the answer, whatever the port does with them.
  struct SentPush : ServerPorts::Call {
    // A part of a sync step waits at the server for the others.
    SentPush(PushAction what, FlightPtr of)
        : Call(Kind::kPush, of->work.step == nullptr),
          action(std::move(what)),
          flight(std::move(of)) {}
    PushAction action;
    FlightPtr flight;
    TimeNs since = 0;
  };
  struct SentConfirm : ServerPorts::Call {
    // It waits for the backups.
    explicit SentConfirm(PushAction what) : Call(Kind::kConfirm, false), action(std::move(what)) {}
    PushAction action;
  };

  // Carries an answer to this thread: f(self, reply) runs here, unless the client is gone.
  template <typename Reply, typename F>
  auto carry(F f) {
    return [weak = weak_from_this(), executor = executor_, owner = std::this_thread::get_id(),
            f = std::move(f)](const Reply& reply) {
      if (std::this_thread::get_id() == owner) {
        if (const auto self = weak.lock()) f(self.get(), reply);
        return;
      }
      executor->post(0, [weak, f, reply] {
        if (const auto self = weak.lock()) f(self.get(), reply);
      });
    };
  }

  // the map
  void list_owners();
  void refresh();
  void drop_gone();
  // pulls
  void send_pull(const PullPtr& pull, ServerId server, const ShardList& shards);
  void pulled(PullPart* part, const PullReply& reply);
  void refused(const PullPtr& pull, ServerId server, const ShardList& shards, const Status& status);
  void retry_later(const PullPtr& pull, ServerId server, const ShardList& shards);
  void retry(Waiting* waiting);
  static void fail_pull(const PullPtr& pull, Status status);
  static void finish_if_over(const PullPtr& pull);
  // pushes (ps_client_push.cc)
  void send_push(PushAction* action);
  void send_confirm(PushAction* action);
  void pushed(SentPush* sent, const PushReply& reply);
  void confirmed(SentConfirm* asked, const Status& status);
  void lost(const PushAction& action);
  void call_over(const SentPush& sent);
  void release(PushSeq seq);
  void perform(std::vector<PushAction>* actions);
  void fail(Status status);
  void check_deadline();
  void sooner();
  void arm_timer();
  void on_timer();

  PsClientOptions options_;
  FetchRoute fetch_route_;
  Executor* executor_;
  ServerPorts ports_;
  PushSession session_;
  std::vector<Owner> owners_;
  std::map<PushSeq, FlightPtr> flights_;
  size_t lingering_ = 0;  // flights that are complete but may still be read
  std::vector<std::shared_ptr<Waiting>> waiting_;
  std::string last_trouble_;  // why a push is tried again
  LatencyHistogram push_times_;
  AgeHistogram push_ages_;
  bool fetching_ = false;
  bool timer_armed_ = false;
  TimeNs timer_at_ = 0;
  uint64_t timer_ = 0;
  std::function<void()> failed_;
  Status status_;
};

}  // namespace flux
