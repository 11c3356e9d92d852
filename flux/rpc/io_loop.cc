#include "flux/rpc/io_loop.h"

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "flux/base/check.h"

namespace flux {
namespace {

// One thread turns the loop and touches its sockets and timers; other threads only post.
std::unique_ptr<asio::io_context> make_context() {
  try {
    return std::make_unique<asio::io_context>(ASIO_CONCURRENCY_HINT_UNSAFE_IO);
  } catch (const std::exception& e) {
    FLUX_CHECK(false, "no event loop: {}; raise the limit of open files (ulimit -n)", e.what());
  }
  return nullptr;
}

std::chrono::steady_clock::time_point time_point(TimeNs ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns));
}

}  // namespace

struct IoLoop::State {
  std::unique_ptr<asio::io_context> context = make_context();
  asio::executor_work_guard<asio::io_context::executor_type> work{context->get_executor()};
};

IoLoop::IoLoop() : state_(std::make_unique<State>()) {}
IoLoop::~IoLoop() = default;

void IoLoop::post(TimeNs delay_ns, std::function<void()> task) {
  asio::io_context& context = *state_->context;
  if (delay_ns <= 0) {
    asio::post(context, std::move(task));
    return;
  }
  const auto when = time_point(now_ns() + delay_ns);
  asio::post(context, [&context, when, task = std::move(task)]() mutable {
    auto timer = std::make_shared<asio::steady_timer>(context, when);
    asio::steady_timer& t = *timer;
    t.async_wait([timer = std::move(timer), task = std::move(task)](const std::error_code& failed) {
      if (!failed) task();
    });
  });
}

size_t IoLoop::poll() {
  return state_->context->poll();
}

bool IoLoop::run_one_until(TimeNs deadline_ns) {
  return state_->context->run_one_until(time_point(deadline_ns)) > 0;
}

void IoLoop::run() {
  state_->context->run();
}
void IoLoop::stop() {
  state_->context->stop();
}
bool IoLoop::stopped() const {
  return state_->context->stopped();
}
asio::io_context& IoLoop::context() {
  return *state_->context;
}

}  // namespace flux
