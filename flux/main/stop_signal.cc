#include "flux/main/stop_signal.h"

#include <csignal>
#include <cstdint>

#include <time.h>
#include <unistd.h>

namespace flux {
namespace {

constexpr int64_t kOneWish_ns = 500'000'000;

std::atomic<bool> stop_requested{false};
std::atomic<bool> stop_announced{true};
std::atomic<int64_t> first_ns{0};  // when the first signal came; 0: none yet
static_assert(std::atomic<bool>::is_always_lock_free);
static_assert(std::atomic<int64_t>::is_always_lock_free);

// May be called in a signal handler, as all of this.
int64_t steady_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void on_signal(int number) {
  const int64_t now = steady_ns();
  int64_t first = 0;
  if (!first_ns.compare_exchange_strong(first, now)) {
    if (now - first >= kOneWish_ns) _exit(128 + number);
    return;
  }
  stop_requested = true;
  if (!stop_announced.load()) return;
  constexpr char kText[] = "\nstopping; again to stop at once\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)ignored;
}

}  // namespace

const std::atomic<bool>* install_stop_signal(bool announce) {
  stop_announced = announce;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away must not end a training
  return &stop_requested;
}

}  // namespace flux
