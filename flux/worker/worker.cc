#include "flux/worker/worker.h"

#include <thread>
#include <utility>

namespace flux {

Result<std::unique_ptr<Worker>> Worker::create(const WorkerOptions& options,
                                               const std::vector<ServerPort*>& servers,
                                               CoordinatorPort* coordinator) {
  std::unique_ptr<Worker> worker(new Worker(options, coordinator));
  for (uint32_t t = 0; t < options.threads; ++t) {
    FLUX_ASSIGN_OR_RETURN(auto trainer, Trainer::create(options.trainer, servers, coordinator));
    worker->trainers_.push_back(std::move(trainer));
  }
  return worker;
}

Status Worker::run_section(const Dataset& dataset, const std::atomic<bool>* stop) {
  Feed feed(options_.id, coordinator_, &dataset, options_.threads, stop);
  const uint64_t geometry = dataset.geometry().hash();
  std::vector<Status> results(trainers_.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < trainers_.size(); ++t)
    threads.emplace_back([&, t] { results[t] = trainers_[t]->run(&feed, geometry); });
  for (std::thread& thread : threads) thread.join();
  FLUX_RETURN_IF_ERROR(feed.status());
  for (const Status& result : results) FLUX_RETURN_IF_ERROR(result);
  return Status::ok();
}

void Worker::set_between_batches(std::function<void()> hook) {
  FLUX_CHECK(trainers_.size() == 1, "only one thread is ever between batches");
  trainers_[0]->set_between_batches(std::move(hook));
}

Progress Worker::progress() const {
  Progress sum;
  for (const auto& trainer : trainers_) trainer->add_progress(&sum);
  return sum;
}

uint64_t Worker::examples() const {
  uint64_t sum = 0;
  for (const auto& trainer : trainers_) sum += trainer->examples();
  return sum;
}

}  // namespace flux
