// Both services with any verb and any bytes: every request gets exactly one answer.
// links: server coordinator client api storage base
#include "flux/api/verbs.h"
#include "flux/client/test_executor.h"
#include "flux/coordinator/coordinator_service.h"
#include "flux/server/server_service.h"
#include "tests/fuzz/fuzz_input.h"

namespace flux {
namespace {

// A disk that is not there.
class NoFiles final : public Files {
 public:
  Status write_atomic(const std::string&, std::string_view) override { return no(); }
  Status write_synced(const std::string&, std::string_view) override { return no(); }
  Status create_exclusive(const std::string&, std::string_view) override { return no(); }
  Status append_synced(const std::string&, std::string_view) override { return no(); }
  Result<std::string> read(const std::string&, uint64_t) override { return no(); }
  Status make_folders(const std::string&) override { return no(); }
  Status sync_folder(const std::string&) override { return no(); }
  bool exists(const std::string&) override { return false; }
  Result<std::vector<std::string>> list(const std::string&) override { return no(); }
  Status remove_all(const std::string&) override { return no(); }

 private:
  static Status no() { return Status(Code::kIo, "no disk"); }
};

class NoMaster final : public JobPort, public ServerRegistry {
 public:
  void join(JoinRequest, std::function<void(Result<JoinReply>)> done) override {
    done(JoinReply{});
  }
  void lease(LeaseRequest, std::function<void(Result<LeaseAnswer>)> done) override {
    done(LeaseAnswer{});
  }
  void report(WorkerId, WorkerReport, std::function<void(Result<ReportAnswer>)> done) override {
    done(ReportAnswer{});
  }
  void map(std::function<void(Result<ClusterMap>)> done) override { done(ClusterMap{}); }
  void geometry(uint64_t, std::function<void(Result<std::string>)> done) override {
    done(std::string());
  }
  void leave(LeaseRequest, WorkerReport, Status, std::function<void(Status)> done) override {
    done(Status::ok());
  }
  void join(ServerJoin, std::function<void(Result<ServerJoinReply>)> done) override {
    done(ServerJoinReply{});
  }
  void report(ServerReport, std::function<void(Result<bool>)> done) override { done(false); }
};

NoFiles no_files;

Result<std::shared_ptr<Server>> make_server(const OpenJob& job) {
  ServerOptions o;
  o.shards = 4;
  o.tables.resize(2);
  o.tables[0].dim = 3;
  o.tables[1].name = "wide";
  o.tables[1].dim = 1;
  o.parameters = 20000;
  o.incarnation = job.incarnation;
  o.places = job.places;
  o.self = job.self;
  o.files = &no_files;
  return Server::create(o);
}

void serve(const FuzzInput& input) {
  TestExecutor executor;
  ServerJobs jobs(make_server);
  OpenJob open{"job", {}, 7, 1, 0, {}};
  for (ShardId shard = 0; shard < 6; ++shard)
    open.places.shards.push_back({shard, {1, 1}, ReplicaRole::kPrimary, kNoServer, kAnyOp});
  // A shard that follows another server's, so that forwards are applied.
  open.places.shards[1].role = open.places.shards[3].role = ReplicaRole::kBackup;
  if (!jobs.open(open).is_ok()) __builtin_trap();
  Server* server = jobs.find(7).value()->server();
  server->open_pass(server->primaries(), 0, 9, [](const Status& status) {
    if (!status.is_ok()) __builtin_trap();
  });
  NoMaster master;
  int answers = 0;
  const Verb verb = input.choice % 64;
  {
    ServerService service(&jobs, {[](const std::function<void()>& task) {
      task();
      return true;
    }});
    CoordinatorService coordinator(&master, &master, &executor);
    for (Service* one : {static_cast<Service*>(&service), static_cast<Service*>(&coordinator)}) {
      RpcRequest request;
      request.verb = verb;
      request.connection = 1;
      request.control = input.control;
      request.payload = input.payload.span();
      one->handle(std::move(request),
                  Responder([&](const Status&, const RpcAnswer&) { ++answers; }));
    }
    coordinator.closed(1);
    executor.run_for(kSecond);
  }
  // A push of a sync step waits for the others, a forward for those before it; both are answered
  // when their job is closed.
  jobs.forget_all();
  if (answers != 2) __builtin_trap();
}

}  // namespace
}  // namespace flux

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  flux::serve(flux::FuzzInput(data, size));
  return 0;
}
