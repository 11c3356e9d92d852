#include "flux/worker/prepare.h"

#include "flux/worker/key_groups.h"

namespace flux {

void BatchPreparer::prepare_one(BatchWork* work, Part* part) const {
  const TimeNs begin = clock_->now_ns();
  part->status = work->item.reader->read_batch(work->item.id.batch, &work->batch);
  const TimeNs read = clock_->now_ns();
  part->read_ns = read - begin;
  if (!part->status.is_ok()) return;
  find_key_groups(work->batch, slot_groups_, &work->groups);
  work->plan.want_occurrences(team_->members() > 1);
  work->plan.build(work->batch.keys, work->groups);
  work->stage = BatchWork::Stage::kPlanned;
  part->plan_ns = clock_->now_ns() - read;
}

Status BatchPreparer::prepare(std::span<const BatchWorkPtr> works) {
  parts_.assign(works.size(), {});
  team_->run(static_cast<uint32_t>(works.size()),
             [&](uint32_t i, uint32_t) { prepare_one(works[i].get(), &parts_[i]); });
  TimeNs read = 0, all = 0;
  for (const Part& part : parts_) {
    FLUX_RETURN_IF_ERROR(part.status);
    read += part.read_ns;
    all += part.read_ns + part.plan_ns;
  }
  read_share_ = all > 0 ? static_cast<double>(read) / static_cast<double>(all) : 0;
  return Status::ok();
}

}  // namespace flux
