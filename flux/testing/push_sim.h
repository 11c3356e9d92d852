// PushSim: push sessions, shard replicas and the block queue of production, in simulated time,
// with lost, doubled and reordered messages, crashes of workers, servers and the whole job.
//
// The rows of a shard are one integer per batch: how often the shard applied it. After every step
// each shard's ledger must say exactly what its rows say and no count may pass one; when faults
// stop, the run must finish with every count at one. A seed is a whole run; a failing seed is the
// bug report. Planted bugs live in the simulated drivers, never in production code.
#pragma once

#include <cstdint>
#include <string>

namespace flux {

enum class PlantedBug : uint8_t {
  kNone,
  kAckBeforeApply,       // answers "applied", applies later without looking again
  kNoIncarnationCheck,   // a message of a former life is taken
  kNoEpochCheck,         // a write under an older epoch is taken
  kEmptyShardsUnmarked,  // shards without rows of the batch are not marked
  kSnapshotApart,        // rows and ledger of a snapshot come from different moments
  kPartialAppliesAll,    // a merged push that a shard has in part is applied whole
  kAttemptInKey,         // a re-issued block gets a new identity
};
const char* planted_bug_name(PlantedBug bug);
constexpr uint32_t kPlantedBugs = 8;  // kNone among them

struct PushSimResult {
  bool ok = true;
  std::string failure;  // what broke, at which simulated time
  uint64_t steps = 0;
  uint64_t messages = 0;
  uint64_t crashes = 0;
  uint64_t duplicates = 0;  // answers "had it before"
  uint64_t trace_hash = 0;  // equal for equal runs
};

PushSimResult run_push_sim(uint64_t seed, PlantedBug bug = PlantedBug::kNone);

}  // namespace flux
