// For tests of rpc/ only: a service that does what the verb says, a listener around it, and a
// client that turns its loop until a call is over.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "flux/base/hash.h"
#include "flux/rpc/io_loop.h"
#include "flux/rpc/listener.h"
#include "flux/rpc/socket_channel.h"

namespace flux::test {

inline ByteSpan bytes_of(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}
inline std::string text_of(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// The same bytes for the same seed and place, none of them special.
inline std::string pattern(size_t size, uint64_t seed) {
  std::string out(size, '\0');
  for (size_t i = 0; i < size; ++i)
    out[i] = static_cast<char>(hash_pair(seed, i / 8) >> (8 * (i % 8)));
  return out;
}

// What the verbs of PeerService do.
constexpr Verb kEcho = 1;   // answers with control and payload
constexpr Verb kSplit = 2;  // the same, in spans of 100 bytes
constexpr Verb kFail = 3;   // kStale "old"
constexpr Verb kKeep = 4;   // keeps the responder until release()
constexpr Verb kDrop = 5;   // drops the responder
constexpr Verb kMany = 6;   // `control` bytes of pattern(n, 1)
constexpr Verb kAdminOnly = 7;

class PeerService final : public Service {
 public:
  bool allows(PeerRole role, Verb verb) const override {
    return verb != kAdminOnly || role == PeerRole::kAdmin;
  }
  void handle(RpcRequest request, Responder respond) override {
    {
      const std::lock_guard lock(mutex);
      last_connection = request.connection;
      last_role = request.role;
      places.insert(request.payload.data());
    }
    EXPECT_EQ(reinterpret_cast<uintptr_t>(request.payload.data()) % 64, 0U);
    switch (request.verb) {
      case kEcho:
      case kAdminOnly:
        return respond.reply({std::string(request.control), {request.payload}, request.memory});
      case kSplit:
        return respond.reply(
            {std::string(request.control), split(request.payload), request.memory});
      case kFail:
        return respond.fail(Status(Code::kStale, "old"));
      case kMany: {
        auto memory =
            std::make_shared<std::string>(pattern(std::stoul(std::string(request.control)), 1));
        return respond.reply({"", {bytes_of(*memory)}, memory});
      }
      case kKeep: {
        const std::lock_guard lock(mutex);
        kept.push_back(std::move(respond));
        return;
      }
      default:
        return;
    }
  }
  void closed(uint64_t connection) override {
    const std::lock_guard lock(mutex);
    closed_connections.push_back(connection);
  }
  // Answers what was kept, from the caller's thread.
  size_t release() {
    std::vector<Responder> all;
    {
      const std::lock_guard lock(mutex);
      all.swap(kept);
    }
    for (Responder& one : all) one.reply({"kept", {}, nullptr});
    return all.size();
  }
  size_t kept_count() {
    const std::lock_guard lock(mutex);
    return kept.size();
  }
  size_t closed_count() {
    const std::lock_guard lock(mutex);
    return closed_connections.size();
  }

  std::mutex mutex;
  std::vector<Responder> kept;
  std::vector<uint64_t> closed_connections;
  uint64_t last_connection = 0;
  PeerRole last_role = PeerRole::kViewer;
  std::set<const void*> places;  // where payloads lay

 private:
  static std::vector<ByteSpan> split(ByteSpan all) {
    std::vector<ByteSpan> out;
    for (; !all.empty(); all = all.subspan(std::min<size_t>(100, all.size())))
      out.push_back(all.first(std::min<size_t>(100, all.size())));
    return out;
  }
};

struct Outcome {
  bool over = false;
  int count = 0;
  Status status;
  RpcReply reply;
};

// A client on the test's own thread.
class Client {
 public:
  explicit Client(std::string_view address, SocketChannelOptions options = {}) {
    auto made = SocketChannel::create(loop, address, std::move(options));
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    channel = std::move(made).value();
  }
  std::shared_ptr<Outcome> start(Verb verb, std::string control = {},
                                 std::vector<ByteSpan> payload = {},
                                 TimeNs timeout_ns = 20 * kSecond, PlacePayload place = nullptr) {
    auto outcome = std::make_shared<Outcome>();
    RpcCall call;
    call.verb = verb;
    call.control = std::move(control);
    call.payload = std::move(payload);
    call.timeout_ns = timeout_ns;
    call.place = std::move(place);
    call.done = [outcome](Status status, RpcReply reply) {
      outcome->over = true;
      ++outcome->count;
      outcome->status = std::move(status);
      outcome->reply = std::move(reply);
    };
    last_id = channel->call(std::move(call));
    return outcome;
  }
  // Turns the loop until `ready`, at most a minute.
  bool until(const std::function<bool()>& ready) {
    const TimeNs end = steady_now_ns() + 60 * kSecond;
    while (!ready() && steady_now_ns() < end)
      loop.run_one_until(std::min(end, steady_now_ns() + 5 * kMillisecond));
    return ready();
  }
  Outcome wait(const std::shared_ptr<Outcome>& outcome) {
    EXPECT_TRUE(until([&] { return outcome->over; }));
    return *outcome;
  }
  Outcome call(Verb verb, std::string control = {}, std::vector<ByteSpan> payload = {},
               TimeNs timeout_ns = 20 * kSecond, PlacePayload place = nullptr) {
    return wait(start(verb, std::move(control), std::move(payload), timeout_ns, std::move(place)));
  }

  IoLoop loop;
  std::unique_ptr<SocketChannel> channel;
  uint64_t last_id = 0;
};

// A listener with a log that can be looked at.
class Server {
 public:
  explicit Server(ListenerOptions options = {}) : log(std::make_shared<Log>()) {
    if (options.addresses.empty()) options.addresses = {"127.0.0.1:0"};
    options.log = [log = log](const std::string& line) { log->add(line); };
    auto made = Listener::start(std::move(options), service);
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    if (made.is_ok()) listener = std::move(made).value();
  }
  std::string address(size_t i = 0) const { return listener->addresses()[i]; }
  bool logged(std::string_view part) const { return log->has(part); }
  std::string all_logs() const { return log->all(); }

  PeerService service;
  std::unique_ptr<Listener> listener;

 private:
  struct Log {
    void add(const std::string& line) {
      const std::lock_guard lock(mutex);
      text += line + "\n";
    }
    bool has(std::string_view part) { return all().find(part) != std::string::npos; }
    std::string all() {
      const std::lock_guard lock(mutex);
      return text;
    }
    std::mutex mutex;
    std::string text;
  };
  std::shared_ptr<Log> log;
};

inline std::string unix_address(const char* name) {
  return "unix:" + ::testing::TempDir() + "flux-rpc-" + std::to_string(::getpid()) + "-" + name;
}

}  // namespace flux::test
