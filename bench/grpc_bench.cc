// What the same calls as in rpc_bench cost with gRPC: the generic callback interface on ByteBuffer
// slices, its cheapest way to move bytes. Both ends send without a copy; what arrives is put into
// the memory of its user, one piece, as flux does, since a batch cannot be trained on loose slices.
// Built only where gRPC is installed (libgrpc++-dev).
// Usage: grpc_bench. Prints a line for people and a JSON object for each case.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "bench/rpc_cases.h"

namespace flux {
namespace {

using bench::kInFlight;
using bench::RpcCase;
using bench::ServerProcess;

// The bytes of all slices, one after the other, in `out`.
void collect(const grpc::ByteBuffer& from, std::string* out) {
  std::vector<grpc::Slice> slices;
  if (!from.Dump(&slices).ok()) std::abort();
  out->resize(from.Length());
  size_t at = 0;
  for (const grpc::Slice& slice : slices) {
    std::memcpy(out->data() + at, slice.begin(), slice.size());
    at += slice.size();
  }
}

class Answer final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Answer(const grpc::Slice& reply) : reply_(&reply, 1) { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      thread_local std::string request;
      collect(request_, &request);
      StartWriteAndFinish(&reply_, {}, grpc::Status::OK);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer request_, reply_;
};

class Answering final : public grpc::CallbackGenericService {
 public:
  explicit Answering(size_t bytes) : reply_(std::string(bytes, 'r')) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Answer(reply_);
  }

 private:
  grpc::Slice reply_;  // shared by all answers, so that no copy is made
};

class Caller {
 public:
  Caller(const std::string& address, const RpcCase& c)
      : stub_(connect(address)), request_(std::string(c.request, 'q')) {}
  void run(int calls) {
    left_ = calls;
    open_ = calls;
    for (int i = 0; i < kInFlight; ++i) next();
    std::unique_lock lock(mutex_);
    over_.wait(lock, [&] { return open_ == 0; });
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request, reply;
  };
  static std::shared_ptr<grpc::Channel> connect(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  void next() {
    if (left_.fetch_sub(1) <= 0) return;
    auto call = std::make_shared<Call>();
    call->request = grpc::ByteBuffer(&request_, 1);
    stub_.UnaryCall(&call->context, "/flux/call", {}, &call->request, &call->reply,
                    [this, call](const grpc::Status& status) {
                      if (!status.ok()) std::abort();
                      thread_local std::string reply;
                      collect(call->reply, &reply);
                      next();
                      const std::lock_guard lock(mutex_);
                      if (--open_ == 0) over_.notify_one();
                    });
  }
  grpc::GenericStub stub_;
  grpc::Slice request_;
  std::atomic<int> left_{0};
  std::mutex mutex_;
  std::condition_variable over_;
  int open_ = 0;
};

void bench_grpc(const RpcCase& c) {
  const ServerProcess server([&](const auto& tell, const auto& wait_for_end) {
    Answering service(c.reply);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service);
    builder.SetMaxReceiveMessageSize(-1);
    const auto listening = builder.BuildAndStart();
    tell("127.0.0.1:" + std::to_string(port));
    wait_for_end();
    std::_Exit(0);
  });
  Caller caller(server.address(), c);
  bench::measure("grpc tcp", c, server, [&](int calls) { caller.run(calls); });
}

}  // namespace
}  // namespace flux

// One case in each process: gRPC does not like a fork after it has started.
int main(int argc, char** argv) {
  for (const flux::bench::RpcCase& c : flux::bench::kRpcCases) {
    if (argc > 1 && std::strcmp(argv[1], c.name) == 0) {
      flux::bench_grpc(c);
      return 0;
    }
  }
  for (const flux::bench::RpcCase& c : flux::bench::kRpcCases) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/proc/self/exe", argv[0], c.name, nullptr);
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  return 0;
}
