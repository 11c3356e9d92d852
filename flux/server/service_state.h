// The parts of ServerService, private to server/: the jobs that are served, with what only the
// service knows of them, and the slow requests under way. Threads: any; failure: Status.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "flux/api/verbs.h"
#include "flux/api/wire_data.h"
#include "flux/api/wire_replica.h"
#include "flux/base/object_pool.h"
#include "flux/server/server_service.h"
#include "flux/server/slow_thread.h"

namespace flux {

// A job as requests find it.
struct ServedJob {
  std::shared_ptr<JobNamespace> job;
  ModelShape shape;
  std::atomic<uint64_t> bytes_in{0}, bytes_out{0};

  // Saves of the latest number that worked: requests and their encoded answers.
  struct Saved {
    std::string folder;
    uint64_t number = 0;
    std::map<std::string, std::string> answers;
  };
  std::mutex save_mutex;
  Saved saved;  // guarded by save_mutex
};

using SharedResponder = std::shared_ptr<Responder>;

class ServerService::State : public std::enable_shared_from_this<State> {
 public:
  State(ServerJobs* jobs, ServerServiceOptions options);

  void pull(const RpcRequest& request, Responder respond);
  void push(const RpcRequest& request, Responder respond);
  void confirm(const RpcRequest& request, Responder respond);
  void replicate(const RpcRequest& request, Responder respond);
  void install(const RpcRequest& request, Responder respond);
  void admin(const RpcRequest& request, Responder respond);
  void forget_all();
  void set_boot(uint64_t boot) { boot_.store(boot); }
  std::shared_ptr<const ModelShape> shape_of(uint64_t incarnation);
  // Slow work under way is finished, what waits is dropped.
  void stop() {
    for (auto& thread : own_) thread.reset();
  }

 private:
  struct PullWork {
    WirePull wire;
    Buffer<std::byte> floats, packed;
  };
  // An answer: a failure, or an encoded message.
  using Answer = Result<std::string>;
  using Tell = std::function<void(Answer)>;
  // Work of one kind waits for its own kind only: a copy holds up no save.
  enum Lane : uint8_t { kOpening, kSaving, kCopying, kInstalling, kLanes };

  Result<std::shared_ptr<ServedJob>> find(uint64_t incarnation);
  ServerPort* data_of(const ServedJob& job) const {
    return options_.data != nullptr ? options_.data : job.job->server();
  }
  bool run_later(Lane lane, std::function<void()> task);
  // Jobs that are not open any more are forgotten.
  void forget_closed();

  // Verbs that answer at once, and those that answer when what they are about is replicated.
  static bool is_logged(ApiVerb verb);
  Answer do_quick(ApiVerb verb, std::string_view message);
  void do_logged(ApiVerb verb, std::string_view message, const Tell& tell);
  // Slow verbs.
  void slow(ApiVerb verb, Lane lane, std::string message, Responder respond);
  // Takes a slow request off the list; who asked for it last gets the answer.
  SharedResponder end_of(const std::string& key);
  void do_slow(ApiVerb verb, std::string_view message, const Tell& tell);
  Answer open_job(std::string_view message);
  Answer save(std::string_view message);
  Answer totals(std::string_view message);
  void copy(std::string_view message, const Tell& tell);

  ServerJobs* const jobs_;
  ServerServiceOptions options_;
  ObjectPool<PullWork> pulls_;
  ObjectPool<WirePush> pushes_;
  ObjectPool<WireReplicate> forwards_;
  std::atomic<uint64_t> boot_{0};

  std::shared_mutex served_mutex_;
  std::map<uint64_t, std::shared_ptr<ServedJob>> served_;  // guarded by served_mutex_
  std::deque<uint64_t> closed_;                            // lately; guarded by served_mutex_

  std::mutex slow_mutex_;
  std::map<std::string, SharedResponder> under_way_;  // by verb and message; guarded by slow_mutex_
  std::array<std::unique_ptr<SlowThread>, kLanes> own_;  // last: their end may touch the rest
};

}  // namespace flux
