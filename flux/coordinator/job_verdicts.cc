// Batches that are set aside: decided, logged, then marked on every shard.
#include <algorithm>
#include <utility>

#include "flux/cluster/skip_limit.h"
#include "flux/coordinator/job_state.h"
#include "flux/data/batch_place.h"

namespace flux {
namespace {
constexpr size_t kReasonMax = 512;
}

// A batch that some shard has was trained by somebody, though whoever did it died before the others
// had it or before we heard: no poison. Once: the mark may also be a verdict that a coordinator
// before us could not finish, and whose log is gone; then it would go on killing workers for ever.
void JobMaster::State::skip_poisoned() {
  if (!queue_ || phase_ != Phase::kTraining) return;
  const char* why = "every worker that trained it alone died";
  for (const BatchId& id : queue_->take_poisoned()) {
    if (is_decided(id) || absolved_.contains(id)) {
      condemn(id, why);
      continue;
    }
    BlockId section = id.block;
    section.block = 0;
    ask_marked(section, true, [this, id, why](const Result<std::vector<uint32_t>>& marked) {
      if (ended() || !queue_ || queue_->section().pass != id.block.pass) return;
      if (!marked.is_ok()) return fail(marked.status());
      if (((marked.value()[id.block.block] >> id.batch) & 1) == 0) return condemn(id, why);
      absolved_.insert(id);
      queue_->absolve(id);
      pump();
    });
  }
}

// What workers computed and did not push: it is not a number.
void JobMaster::State::take_refused(const std::vector<RefusedBatch>& refused) {
  if (phase_ != Phase::kTraining || !queue_) return;
  for (const RefusedBatch& batch : refused) {
    const BlockId& block = batch.id.block;
    const BlockId section{block.pass, block.phase, block.epoch, 0};
    const bool ours = section == queue_->section() && block.block < geometry_->blocks.size() &&
                      batch.id.batch < geometry_->batches_in(block.block) &&
                      batch.id.batches_in_block == geometry_->batches_in(block.block);
    if (!ours || ((queue_->applied_mask(block.block) >> batch.id.batch) & 1) != 0) continue;
    condemn(batch.id, batch.reason.substr(0, kReasonMax));
  }
}

// Decided and logged before any shard is marked. A batch that is decided and yet was trained again
// was taken for open by a look at the shards from before they were marked: they are told again,
// else nobody would ever settle it.
void JobMaster::State::condemn(const BatchId& id, const std::string& why) {
  if (deciding_.contains(id)) return;
  if (is_decided(id)) return mark_condemned(id);
  const std::vector<BatchId> before = decided(Verdict::kSkipped);
  const std::string place = describe_batch(*geometry_, id.block.block, id.batch, id.block.epoch);
  const uint64_t batches = geometry_->batches() * plan_.schedule.sections();
  const Status allowed = check_skips(before.size() + deciding_.size() + 1, batches,
                                     plan_.skip_limit, place + ": " + why);
  if (!allowed.is_ok())
    return fail(invalid(
        "{}; {}", allowed.message(),
        newest_ ? fmt::format("the last checkpoint, {}, is good", store().path_of(newest_->number))
                : "no checkpoint was saved before it"));
  deciding_.insert(id);
  say(fmt::format("skipped {} ({}): {}", to_string(id), place, why));
  Decision decision;
  decision.kind = "verdict";
  decision.term = term_;
  decision.pass = pass_;
  decision.geometry = geometry_->hash();
  decision.batch = id;
  decision.verdict = Verdict::kSkipped;
  decision.why = why;
  const std::string line =
      fmt::format("{}\t{}\t{}\t{}\n", plan_.passes[pass_], to_string(id), place, why);
  slowly<bool>(
      [files = files_, log = DecisionLog(files_, in_output("coordinator.log")),
       path = in_output("skipped.tsv"), decision, line]() mutable -> Result<bool> {
        FLUX_RETURN_IF_ERROR(log.append(decision));
        FLUX_RETURN_IF_ERROR(files->append_synced(path, line));
        return true;
      },
      [this, decision](const Result<bool>& logged) {
        deciding_.erase(decision.batch);
        if (ended()) return;
        if (!logged.is_ok()) return fail(logged.status());
        decisions_.push_back(decision);
        ++batches_skipped_;
        mark_condemned(decision.batch);
      });
}

void JobMaster::State::mark_condemned(const BatchId& id) {
  tell_all(
      "a verdict",
      [id, geometry = geometry_->hash()](ServerAdminPort* port, AdminCall call,
                                         ServerAdminPort::Done done) {
        port->mark(std::move(call), geometry, {id}, Verdict::kSkipped, std::move(done));
      },
      [this, id](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        if (!queue_) return;
        queue_->settled(id);
        acknowledge({}, {});
        pump();
      });
}

bool JobMaster::State::is_decided(const BatchId& id) const {
  const std::vector<BatchId> skipped = decided(Verdict::kSkipped);
  return std::binary_search(skipped.begin(), skipped.end(), id);
}

// Of the open pass, by whichever coordinator.
std::vector<BatchId> JobMaster::State::decided(Verdict verdict) const {
  std::vector<BatchId> ids;
  for (const Decision& d : decisions_)
    if (d.kind == "verdict" && d.pass == pass_ && d.geometry == geometry_->hash() &&
        d.verdict == verdict)
      ids.push_back(d.batch);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace flux
