// What a call costs: CPU time of client and server processes, over TCP and a Unix socket, beside a
// bare loopback socket that moves the same bytes without frames or checksums. The checksum of flux
// is always on. grpc_bench measures gRPC in the same way.
// Usage: rpc_bench [part of a name, as in "tcp large"]. Prints a line for people and a JSON object
// for each case.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "bench/rpc_cases.h"
#include "flux/base/buffer.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/listener.h"
#include "flux/rpc/socket_channel.h"

namespace flux {
namespace {

using bench::kInFlight;
using bench::RpcCase;
using bench::ServerProcess;

class ReplyService final : public Service {
 public:
  explicit ReplyService(size_t bytes) : memory_(std::make_shared<std::string>(bytes, 'r')) {}
  bool allows(PeerRole, Verb) const override { return true; }
  void handle(RpcRequest, Responder respond) override {
    const ByteSpan all = std::as_bytes(std::span<const char>(*memory_));
    respond.reply({"control", {all.first(all.size() / 2), all.subspan(all.size() / 2)}, memory_});
  }

 private:
  std::shared_ptr<std::string> memory_;
};

class Caller {
 public:
  Caller(const std::string& address, const RpcCase& c) : request_(c.request), reply_(c.reply) {
    channel_ = SocketChannel::create(loop_, address, {}).value();
    request_.fill('q');
  }
  void run(int calls) {
    left_ = calls;
    over_ = 0;
    for (int i = 0; i < kInFlight; ++i) next();
    while (over_ < calls) loop_.run_one_until(loop_.now_ns() + kSecond);
  }

 private:
  void next() {
    if (left_-- <= 0) return;
    RpcCall call;
    call.verb = 1;
    call.control = "control";
    call.payload = {std::as_bytes(std::span<const char>(request_.span()))};
    call.place = [this](std::string_view, uint64_t bytes) {
      return Result<std::vector<MutableByteSpan>>(
          {std::as_writable_bytes(reply_.span()).first(bytes)});
    };
    call.done = [this](const Status& status, const RpcReply&) {
      FLUX_CHECK(status.is_ok(), "{}", status.message());
      ++over_;
      next();
    };
    channel_->call(std::move(call));
  }
  IoLoop loop_;
  std::unique_ptr<SocketChannel> channel_;
  Buffer<char> request_, reply_;
  int left_ = 0, over_ = 0;
};

void bench_flux(const char* system, const std::string& address, const RpcCase& c) {
  const ServerProcess server([&](const auto& tell, const auto& wait_for_end) {
    ReplyService service(c.reply);
    ListenerOptions options;
    options.addresses = {address};
    const auto listener = Listener::start(std::move(options), service).value();
    tell(listener->addresses()[0]);
    wait_for_end();
  });
  Caller caller(server.address(), c);
  bench::measure(system, c, server, [&](int calls) { caller.run(calls); });
}

// --- the bare socket -----------------------------------------------------------------------------

void move_all(int fd, char* data, size_t size, bool out) {
  while (size > 0) {
    const ssize_t n = out ? ::send(fd, data, size, MSG_NOSIGNAL) : ::recv(fd, data, size, 0);
    if (n <= 0) std::exit(0);
    data += n;
    size -= static_cast<size_t>(n);
  }
}

void bench_raw(const RpcCase& c) {
  const ServerProcess server([&](const auto& tell, const auto& wait_for_end) {
    const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    FLUX_CHECK(::bind(listening, reinterpret_cast<sockaddr*>(&name), size) == 0 &&
                   ::listen(listening, 1) == 0,
               "no loopback socket");
    ::getsockname(listening, reinterpret_cast<sockaddr*>(&name), &size);
    tell(std::to_string(ntohs(name.sin_port)));
    const int fd = ::accept(listening, nullptr, nullptr);
    Buffer<char> request(c.request), reply(c.reply);
    reply.fill('r');
    for (;;) {
      move_all(fd, request.data(), c.request, false);
      move_all(fd, reply.data(), c.reply, true);
    }
    wait_for_end();
  });
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0), on = 1;
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(static_cast<uint16_t>(std::stoi(server.address())));
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  FLUX_CHECK(::connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0, "no connection");
  Buffer<char> request(c.request), reply(c.reply);
  request.fill('q');
  bench::measure("raw tcp", c, server, [&](int calls) {
    for (int i = 0; i < std::min(calls, kInFlight); ++i)
      move_all(fd, request.data(), c.request, true);
    for (int i = 0; i < calls; ++i) {
      move_all(fd, reply.data(), c.reply, false);
      if (i + kInFlight < calls) move_all(fd, request.data(), c.request, true);
    }
  });
  ::close(fd);
}

}  // namespace
}  // namespace flux

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  const std::string unix_address = fmt::format("unix:/tmp/flux-rpc-bench-{}.sock", ::getpid());
  const auto wanted = [&](const std::string& name, const flux::bench::RpcCase& c) {
    return (name + " " + c.name).find(only) != std::string::npos;
  };
  for (const flux::bench::RpcCase& c : flux::bench::kRpcCases) {
    if (wanted("flux tcp", c)) flux::bench_flux("flux tcp", "127.0.0.1:0", c);
    if (wanted("flux unix", c)) flux::bench_flux("flux unix", unix_address, c);
    if (wanted("raw tcp", c)) flux::bench_raw(c);
  }
  return 0;
}
