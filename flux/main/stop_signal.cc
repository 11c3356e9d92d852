#include "flux/main/stop_signal.h"

#include <csignal>

#include <unistd.h>

namespace flux {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<bool> stop_announced{true};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int number) {
  if (!stop_requested.exchange(true)) {
    if (!stop_announced.load()) return;
    constexpr char kText[] = "\nstopping; again to stop at once\n";
    const ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
    (void)ignored;
    return;
  }
  _exit(128 + number);
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
