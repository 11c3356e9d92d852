// PsClient: a trainer thread's way to the servers: routing by the shard map, retry, exactly-once.
//
// Drives a PushSession with real time and real ports. The caller's buffers of a push must stay
// untouched until `released` is called for it: every shard has acknowledged it then.
// Threads: one owner, whose executor runs the timers; ports may answer on that thread only (the
// in-process port answers inside the call). Failure: status() turns to kStale when this worker was
// fenced off; nothing more is sent then.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "flux/api/coordinator.h"
#include "flux/api/server.h"
#include "flux/base/executor.h"
#include "flux/protocol/push_session.h"

namespace flux {

struct PsClientOptions {
  uint64_t incarnation = 0;
  PushSessionOptions session;
};

// One batch to push. Spans point into the caller's buffers.
struct PushWork {
  std::vector<BatchId> ids;
  uint64_t geometry = 0;
  ShardedKeys keys;
  const uint32_t* counts = nullptr;
  std::vector<const float*> tables;
  const float* dense = nullptr;
  uint64_t examples = 0;
  uint64_t bytes = 0;
  std::function<void()> released;
};

class PsClient {
 public:
  PsClient(const PsClientOptions& options, std::vector<ServerPort*> servers,
           CoordinatorPort* coordinator, Executor* executor);

  // Rows of all tables for `keys`, and the dense vector unless `dense` is null.
  void pull(const ShardedKeys& keys, std::span<float*> tables, float* dense,
            std::function<void(Status)> done);
  bool has_room() const { return session_.has_room(); }
  void push(PushWork work);
  size_t in_flight() const { return session_.in_flight(); }
  const Status& status() const { return status_; }
  uint64_t resends() const { return session_.resends(); }
  uint64_t duplicates() const { return session_.duplicates(); }

 private:
  void perform(const std::vector<PushAction>& actions);
  void send(const PushAction& action);
  void arm_timer();

  PsClientOptions options_;
  std::vector<ServerPort*> servers_;
  CoordinatorPort* coordinator_;
  Executor* executor_;
  PushSession session_;
  std::vector<ShardId> all_shards_;
  std::map<PushSeq, PushWork> works_;
  bool timer_armed_ = false;
  Status status_;
};

}  // namespace flux
