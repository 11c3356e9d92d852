// Batches that are set aside: decided, logged, then marked on every shard.
#include <algorithm>
#include <utility>

#include "flux/coordinator/job_state.h"

namespace flux {

// A batch that some shard has was trained by somebody, though whoever did it died before the others
// had it or before we heard: no poison.
void JobMaster::State::skip_poisoned() {
  if (!queue_ || phase_ != Phase::kTraining) return;
  for (const BatchId& id : queue_->take_poisoned()) {
    BlockId section = id.block;
    section.block = 0;
    ask_marked(section, true, [this, id](const Result<std::vector<uint32_t>>& marked) {
      if (ended() || !queue_ || queue_->section().pass != id.block.pass) return;
      if (!marked.is_ok()) return fail(marked.status());
      if (((marked.value()[id.block.block] >> id.batch) & 1) == 0) return condemn(id);
      queue_->absolve(id);
      pump();
    });
  }
}

void JobMaster::State::log_verdict(const BatchId& id, const std::string& why,
                                   std::function<void()> then) {
  Decision decision;
  decision.kind = "verdict";
  decision.term = term_;
  decision.pass = pass_;
  decision.geometry = geometry_->hash();
  decision.batch = id;
  decision.verdict = Verdict::kSkipped;
  decision.why = why;
  slowly<bool>(
      [log = DecisionLog(files_, in_output("coordinator.log")),
       decision]() mutable -> Result<bool> {
        FLUX_RETURN_IF_ERROR(log.append(decision));
        return true;
      },
      [this, decision, then = std::move(then)](const Result<bool>& logged) {
        if (ended()) return;
        if (!logged.is_ok()) return fail(logged.status());
        decisions_.push_back(decision);
        then();
      });
}

// Decided and logged before any shard is marked.
void JobMaster::State::condemn(const BatchId& id) {
  const std::string why = "every worker that trained it alone died";
  const DataBlock& block = geometry_->blocks[id.block.block];
  say(fmt::format("skipped {} ({}, bytes {} to {}): {}", to_string(id),
                  geometry_->files[block.file].path, block.begin, block.end, why));
  log_verdict(id, why, [this, id] { mark_condemned(id); });
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
        ++batches_skipped_;
        if (!queue_) return;
        queue_->settled(id);
        acknowledge({}, {});
        pump();
      });
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
