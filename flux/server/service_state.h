// The parts of ServerService, private to server/: the jobs that are served, with what only the
// service knows of them, and the slow requests under way. Threads: any; failure: Status.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "flux/api/verbs.h"
#include "flux/api/wire_data.h"
#include "flux/base/object_pool.h"
#include "flux/server/server_service.h"
#include "flux/server/slow_thread.h"

namespace flux {

// A job as requests find it.
struct ServedJob {
  std::shared_ptr<JobNamespace> job;
  ModelShape shape;
  std::atomic<uint64_t> bytes_in{0}, bytes_out{0};

  struct Saved {
    std::string folder;
    uint64_t number = 0;
    std::string answer;  // encoded
  };
  std::mutex save_mutex;
  std::optional<Saved> saved;  // the last one that worked; guarded by save_mutex
};

using SharedResponder = std::shared_ptr<Responder>;

class ServerService::State : public std::enable_shared_from_this<State> {
 public:
  State(ServerJobs* jobs, ServerServiceOptions options);

  void pull(const RpcRequest& request, Responder respond);
  void push(const RpcRequest& request, Responder respond);
  void admin(const RpcRequest& request, Responder respond);
  // Slow work under way is finished, what waits is dropped.
  void stop() { own_.reset(); }

 private:
  struct PullWork {
    WirePull wire;
    Buffer<std::byte> floats, packed;
  };
  // An answer: a failure, or an encoded message.
  using Answer = Result<std::string>;

  Result<std::shared_ptr<ServedJob>> find(uint64_t incarnation);
  ServerPort* data_of(const ServedJob& job) const {
    return options_.data != nullptr ? options_.data : job.job->server();
  }
  // Jobs that are not open any more are forgotten.
  void forget_closed();
  Answer do_quick(ApiVerb verb, std::string_view message);
  void slow(ApiVerb verb, std::string message, Responder respond);
  // Takes a slow request off the list; who asked for it last gets the answer.
  SharedResponder end_of(const std::string& key);
  Answer do_slow(ApiVerb verb, std::string_view message);
  Answer open_job(std::string_view message);
  Answer save(std::string_view message);
  Answer totals(std::string_view message);

  ServerJobs* const jobs_;
  ServerServiceOptions options_;
  ObjectPool<PullWork> pulls_;
  ObjectPool<WirePush> pushes_;

  std::shared_mutex served_mutex_;
  std::map<uint64_t, std::shared_ptr<ServedJob>> served_;  // guarded by served_mutex_
  std::deque<uint64_t> closed_;                            // lately; guarded by served_mutex_

  std::mutex slow_mutex_;
  std::map<std::string, SharedResponder> under_way_;  // by verb and message; guarded by slow_mutex_
  std::unique_ptr<SlowThread> own_;                   // last: its end may still touch the rest
};

}  // namespace flux
