// Preparing batches: read, parsed and their keys planned. None of it depends on the model, so whole
// batches that will be trained later are prepared side by side, each by one member of the team,
// while nothing else is done.
// Threads: the trainer's, which leads the team. Failure: the first batch that cannot be read, in
// the order given.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/status.h"
#include "flux/base/team.h"
#include "flux/worker/batch_work.h"

namespace flux {

class BatchPreparer {
 public:
  BatchPreparer(Team* team, const Executor* clock, std::vector<uint8_t> slot_groups)
      : team_(team), clock_(clock), slot_groups_(std::move(slot_groups)) {}

  Status prepare(std::span<const BatchWorkPtr> works);
  // What of the time of the last prepare() was reading; the rest was planning.
  double read_share() const { return read_share_; }

 private:
  struct Part {
    Status status;
    TimeNs read_ns = 0, plan_ns = 0;
  };
  void prepare_one(BatchWork* work, Part* part) const;

  Team* team_;
  const Executor* clock_;
  const std::vector<uint8_t> slot_groups_;
  std::vector<Part> parts_;
  double read_share_ = 0;
};

}  // namespace flux
