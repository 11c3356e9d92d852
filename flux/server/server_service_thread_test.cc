// The service with real threads: workers at once over sockets, slow verbs on their own thread.
#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "flux/api/verbs.h"
#include "flux/api/wire_message.h"
#include "flux/client/remote_server.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/listener.h"
#include "flux/rpc/socket_channel.h"
#include "flux/server/server_service.h"
#include "flux/server/test_batch.h"

namespace flux {
namespace {

using namespace test;  // NOLINT: the model of these tests

// Two workers on threads of their own push the same batches over sockets; each counts once.
TEST(ServerServiceThread, WorkersAtOnceCountExactly) {
  constexpr uint32_t kBatches = 40;
  ServerJobs jobs(make_server);
  ASSERT_TRUE(jobs.open({"job", {}, kLife, 1, 0, alone(every_shard())}).is_ok());
  Server* server = jobs.find(kLife).value()->server();
  server->open_pass(server->primaries(), 0, kGeometry,
                    [](const Status& status) { ASSERT_TRUE(status.is_ok()); });
  ServerService service(&jobs);
  ListenerOptions options;
  options.addresses = {"tcp:127.0.0.1:0"};
  options.threads = 2;
  auto listener = Listener::start(options, service);
  ASSERT_TRUE(listener.is_ok()) << listener.status().message();
  uint64_t occurrences = 0;
  for (uint32_t i = 0; i < kBatches; ++i) occurrences += BatchData(i, i).keys.size() * 2;
  std::atomic<uint64_t> applied{0}, duplicates{0};
  std::vector<std::thread> workers;
  for (uint64_t w = 0; w < 2; ++w)
    workers.emplace_back([&] {
      IoLoop loop;
      const auto channel =
          std::move(SocketChannel::create(loop, listener.value()->addresses()[0], {})).value();
      RemoteServer remote(channel.get(), kShape, {.value = WireValue::kBf16});
      for (uint32_t i = 0; i < kBatches; ++i) {
        const BatchData data(i, i);
        const Rows rows(data);
        int waiting = 2;
        remote.push(data.push, [&](const PushReply& reply) {
          for (const ShardAnswer& a : reply.answers)
            ++(a.answer == Answer::kApplied ? applied : duplicates);
          --waiting;
        });
        remote.pull(rows.pull, [&](const PullReply& reply) {
          EXPECT_TRUE(reply.status.is_ok()) << reply.status.message();
          --waiting;
        });
        while (waiting > 0 && loop.run_one_until(loop.now_ns() + 20 * kSecond)) continue;
        ASSERT_EQ(waiting, 0);
      }
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(applied.load(), kBatches * uint64_t{kShape.all_shards()});
  EXPECT_EQ(duplicates.load(), applied.load());
  EXPECT_EQ(jobs.find(kLife).value()->server()->totals().occurrences[0], occurrences);
}

// With its own thread: nothing waits for a slow verb but who asked for it.
TEST(ServerServiceThread, SlowVerbsRunApartAndEndWithTheService) {
  ServerJobs jobs(make_server);
  std::promise<Status> opened;
  auto service = std::make_unique<ServerService>(&jobs);
  const OpenJob open{"job", {}, kLife, 1, 0, alone(every_shard())};
  const std::string control = encode_message(open);
  RpcRequest request;
  request.verb = static_cast<Verb>(ApiVerb::kOpenJob);
  request.control = control;
  service->handle(std::move(request), Responder([&](Status status, const RpcAnswer&) {
                    opened.set_value(std::move(status));
                  }));
  EXPECT_TRUE(opened.get_future().get().is_ok());
  EXPECT_TRUE(jobs.find(kLife).is_ok());
  // Whatever is asked last is answered, done or not.
  std::promise<void> answered;
  RpcRequest last;
  last.verb = static_cast<Verb>(ApiVerb::kTotals);
  const std::string totals = encode_message(TotalsRequest{{kLife, 1, {}, {}}, true, {}});
  last.control = totals;
  service->handle(std::move(last),
                  Responder([&](const Status&, const RpcAnswer&) { answered.set_value(); }));
  service.reset();
  answered.get_future().get();
}

}  // namespace
}  // namespace flux
