#include "flux/main/reporter.h"

#include <chrono>
#include <utility>

namespace flux {
namespace {
constexpr auto kTick = std::chrono::milliseconds(100);

ProgressPoint point_of(const Progress& progress) {
  return {progress.examples, progress.metrics.loss_sum(), progress.metrics.auc()};
}
}  // namespace

Reporter::Reporter(bool terminal, std::string curve_path)
    : curve_path_(std::move(curve_path)), view_(terminal, &curve_) {}

Reporter::~Reporter() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Reporter::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  view_.say(line);
}

void Reporter::start(const Worker* worker, uint64_t before, uint64_t total,
                     std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!curve_loaded_) curve_.load(curve_path_, before);
  curve_loaded_ = true;
  // A worker's progress runs over all passes of this process.
  view_.begin(before - std::min(before, worker->examples()), total, steady_now_ns());
  stopping_ = false;
  thread_ = std::thread([this, worker, task = std::move(task)] { loop(worker, task); });
}

void Reporter::loop(const Worker* worker, const std::function<void()>& task) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kTick);
    if (stopping_) return;
    const TimeNs now = steady_now_ns();
    const uint64_t examples = worker->examples();
    if (view_.due(examples, now)) view_.update(point_of(worker->progress()), now);
    view_.draw_bar(examples, now);
    if (!task) continue;
    lock.unlock();
    task();
    lock.lock();
  }
}

void Reporter::stop(const Progress& last) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  view_.finish(point_of(last), steady_now_ns());
}

Status Reporter::save_curve() {
  const std::lock_guard lock(mutex_);
  return curve_.save(curve_path_);
}

}  // namespace flux
