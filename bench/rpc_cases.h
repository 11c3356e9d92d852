// What the rpc benchmarks share: the sizes, a server in a process of its own, and the CPU time of
// both processes per call. Used by rpc_bench.cc and grpc_bench.cc, so that both measure alike.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flux::bench {

struct RpcCase {
  const char* name;
  size_t request, reply;
  int calls;
};
// A pull of 10,000 keys and its rows; and the smallest useful call.
inline const RpcCase kRpcCases[] = {{"large", 80'000, 440'000, 2000}, {"small", 64, 64, 20'000}};
constexpr int kInFlight = 2;
constexpr int kRounds = 5;

inline double clock_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Runs `serve` in a child; it tells its address (a line) and ends when `wait_for_end` returns.
class ServerProcess {
 public:
  using Serve = std::function<void(const std::function<void(const std::string&)>& tell,
                                   const std::function<void()>& wait_for_end)>;
  explicit ServerProcess(const Serve& serve) {
    int down[2], up[2];
    if (::pipe(down) != 0 || ::pipe(up) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(down[1]);
      ::close(up[0]);
      serve(
          [&](const std::string& address) {
            const std::string line = address + "\n";
            if (::write(up[1], line.data(), line.size()) < 0) std::abort();
          },
          [&] {
            char end;
            while (::read(down[0], &end, 1) > 0) {
            }
          });
      ::_exit(0);
    }
    ::close(down[0]);
    ::close(up[1]);
    end_ = down[1];
    for (char c; ::read(up[0], &c, 1) == 1 && c != '\n';) address_ += c;
    ::close(up[0]);
    if (clock_getcpuclockid(pid_, &clock_) != 0) std::abort();
  }
  ~ServerProcess() {
    ::close(end_);
    ::waitpid(pid_, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  const std::string& address() const { return address_; }
  double cpu_seconds() const { return clock_seconds(clock_); }

 private:
  pid_t pid_ = 0;
  int end_ = -1;
  clockid_t clock_{};
  std::string address_;
};

// `run(calls)` makes so many calls; the best round of CPU time, client and server together, counts.
inline void measure(const char* system, const RpcCase& c, const ServerProcess& server,
                    const std::function<void(int)>& run) {
  run(c.calls / 10 + 1);
  double best = 1e9, client = 0, served = 0, wall = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double own = clock_seconds(CLOCK_PROCESS_CPUTIME_ID), theirs = server.cpu_seconds();
    const double start = clock_seconds(CLOCK_MONOTONIC);
    run(c.calls);
    const double scale = 1e6 / c.calls;
    const double a = (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - own) * scale;
    const double b = (server.cpu_seconds() - theirs) * scale;
    if (a + b >= best) continue;
    best = a + b;
    client = a;
    served = b;
    wall = (clock_seconds(CLOCK_MONOTONIC) - start) * scale;
  }
  fmt::print("{:14} {:6} {:8.1f} us of CPU a call (client {:.1f}, server {:.1f}), {:.1f} us wall\n",
             system, c.name, best, client, served, wall);
  fmt::print(
      "{{\"bench\": \"rpc\", \"system\": \"{}\", \"case\": \"{}\", \"request\": {}, "
      "\"reply\": {}, \"cpu_us\": {:.2f}, \"client_us\": {:.2f}, \"server_us\": {:.2f}, "
      "\"wall_us\": {:.2f}}}\n",
      system, c.name, c.request, c.reply, best, client, served, wall);
  std::fflush(stdout);
}

}  // namespace flux::bench
