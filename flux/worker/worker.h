// Worker: the stateless role that trains: T trainer threads over one feed.
//
// Whatever it loses in a crash can be trained again from the ledger's point of view; it keeps
// nothing that matters. Threads: run_section() starts its threads and joins them; progress() is
// safe meanwhile. Failure: the first trainer's Status; the others stop after their batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "flux/worker/trainer.h"

namespace flux {

struct WorkerOptions {
  WorkerId id = 0;
  uint32_t threads = 1;
  TrainerOptions trainer;
};

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> create(const WorkerOptions& options,
                                                const std::vector<ServerPort*>& servers,
                                                CoordinatorPort* coordinator);
  // Trains blocks of the current section until none is left to lease or *stop turns true.
  Status run_section(const Dataset& dataset, const std::atomic<bool>* stop);
  // See Trainer::set_between_batches; only with one thread.
  void set_between_batches(std::function<void()> hook);
  Progress progress() const;
  uint64_t examples() const;
  uint32_t threads() const { return options_.threads; }

 private:
  Worker(const WorkerOptions& options, CoordinatorPort* coordinator)
      : options_(options), coordinator_(coordinator) {}
  WorkerOptions options_;
  CoordinatorPort* coordinator_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
};

}  // namespace flux
