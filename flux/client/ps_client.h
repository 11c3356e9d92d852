// PsClient: a trainer thread's way to the servers: routing by the shard map, retry, exactly-once.
//
// A pull is one request per server; what a server cannot answer now is asked again, of whoever owns
// the shards then, until a deadline. A push is driven by a PushSession: sent to every shard's
// owner, sent again by time, `applied` when every shard has it, `released` when every shard has it
// replicated. Servers come and go: ports are made and dropped as the map says; a refusal, a closed
// connection or an unknown server asks for a new map at once, and again with short pauses until
// something changes. An older map is never taken.
// Memory: the caller's buffers stay untouched until `done` (pull) or `released` (push), which are
// called only when no port touches them any more. If the client dies before that, neither is
// called; `memory` of the request lives as long as any port may still use it. Threads: one owner,
// the thread of the executor. Ports may answer inside the call, later on that thread, or on another
// thread (the answer is then carried over); the executor outlives the ports. Failure: a pull's
// Status names server, shard and how long; status() turns bad when a push was refused for good
// (kStale: this worker was fenced off) or was not applied until the deadline, and nothing more is
// sent then.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/api/server.h"
#include "flux/base/executor.h"
#include "flux/base/latency.h"
#include "flux/client/pull_marks.h"
#include "flux/client/server_ports.h"
#include "flux/protocol/push_session.h"

namespace flux {

struct PsClientOptions {
  uint64_t incarnation = 0;
  // The model, as every request lays it out. 0 shards: unknown; every pull then names all shards.
  ModelShape shape;
  Team* team = nullptr;  // of the owner, for servers in this process; see PullRequest
  PushSessionOptions session;
  TimeNs pull_deadline_ns = 60 * kSecond;
  TimeNs push_deadline_ns = 60 * kSecond;    // to be applied
  TimeNs pull_retry_ns = 20 * kMillisecond;  // doubles up to the next
  TimeNs pull_retry_max_ns = 200 * kMillisecond;
  TimeNs suspect_ns = 500 * kMillisecond;  // an answer that a server gives at once is so late
};

// Asks the coordinator for the map of now; the answer comes on the client's executor (or inside the
// call), once.
using FetchRoute = std::function<void(std::function<void(Result<ClusterMap>)>)>;

struct PullWork {
  ShardedKeys keys;
  std::span<float*> tables;            // where rows of all tables of the phase go
  float* dense = nullptr;              // where its dense vector goes; null: not wanted
  std::shared_ptr<const void> memory;  // keeps all of that alive
  uint32_t phase = 0;
  PullMarks* marks = nullptr;  // where what the servers counted is added; null: not wanted
};

// A batch to push. Pointers into the caller's buffers.
struct PushWork {
  std::vector<BatchId> ids;  // the one
  uint64_t geometry = 0;
  ShardedKeys keys;
  const uint32_t* counts = nullptr;
  std::vector<const float*> tables;
  const float* dense = nullptr;
  uint64_t examples = 0;
  float lr_scale = 1;  // see PushRequest
  PullMarks pulled;    // of what the gradient was computed with
  uint64_t bytes = 0;
  std::shared_ptr<const SyncStep> step;  // sync mode
  std::shared_ptr<const void> memory;    // keeps all of that alive
  std::function<void()> applied;         // every shard has it; may be empty
  std::function<void()> released;        // every shard has it replicated; the buffers are free
};

class PsClient {
 public:
  PsClient(const PsClientOptions& options, ClusterMap map, ReachServer reach,
           FetchRoute fetch_route, Executor* executor);
  ~PsClient();
  PsClient(const PsClient&) = delete;
  PsClient& operator=(const PsClient&) = delete;

  void pull(PullWork work, std::function<void(Status)> done);
  void pull(const ShardedKeys& keys, std::span<float*> tables, float* dense,
            std::function<void(Status)> done);
  bool has_room() const;
  void push(PushWork work);
  // A newer map came by another way.
  void set_map(ClusterMap map);
  // Called when status() turns bad.
  void on_failure(std::function<void()> failed);

  size_t in_flight() const;  // pushes that hold buffers
  size_t unapplied() const;  // pushes that some shard has not applied yet
  const Status& status() const;
  uint64_t resends() const;
  uint64_t duplicates() const;
  // From each push request to its answer; of lost ones none.
  const LatencyHistogram& push_times() const;
  // How old pushes were when they were applied, at each server once, as far as it is known.
  const AgeHistogram& push_ages() const;
  // Whom it waits for: "server 1"; "" if nobody owes an answer.
  std::string waits_for_pull() const;
  std::string waits_for_push() const;
  // Servers that do not answer or cannot be reached, as it looks from here. `idle_since`: since
  // then the owner's thread has only waited for answers; before that some may have lain unread.
  std::vector<ServerId> suspects(TimeNs idle_since) const;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace flux
