// Accounting: what became of every example, from the integer counters in the tables.
//
// Each row counts the occurrences of its key that were ever applied to it. Their sum must be
// (examples x sparse features) where each feature has one key (`slots` is 0 where it may have any
// number: then only dense counters speak); with one key per example, each key's count says exactly
// which example was lost or doubled. Of a job with several phases each is counted by its own dense
// shards, and a table by the phases that change it. The ledger is not asked: this is what checks
// the ledger. Pure; not while training.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/api/model_shape.h"
#include "flux/api/server_admin.h"
#include "flux/checkpoint/manifest.h"
#include "flux/coordinator/job_master.h"
#include "flux/server/server.h"

namespace flux {

struct Accounting {
  uint64_t expected = 0;  // examples that should be applied, each as often as its pass repeats
  uint64_t applied = 0;   // examples that were, lost and doubled ones apart
  uint64_t skipped = 0;
  uint64_t lost = 0;
  uint64_t doubled = 0;
  bool exact() const { return lost == 0 && doubled == 0; }
};

// What a model's counters can tell.
struct CountedModel {
  uint32_t slots = 0;
  bool key_per_example = false;
  std::vector<PhaseShape> phases = {};  // as in a ModelShape
};

// `passes`: every pass that was trained completely, and of an open one what every shard has.
// `open`: the open pass by phase. What of it only some shards have will be trained again for the
// others, so any part of it may be in the counters without being lost or doubled.
// `totals`: over all servers; of a job with one key per example with the counts that
// expected_counts(passes) asks for.
Accounting account(const JobTotals& totals, std::span<const ClosedPass> passes,
                   std::span<const OpenPhase> open, const CountedModel& model);
// The same of each phase by itself, from its dense shards; of a job with several.
std::vector<Accounting> account_phases(const JobTotals& totals, std::span<const ClosedPass> passes,
                                       std::span<const OpenPhase> open, size_t phases);
std::vector<ExpectedCount> expected_counts(std::span<const ClosedPass> passes);
// Of a job with one phase, of whose open pass `partly` examples are on some shards only.
Accounting account(const JobTotals& totals, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly);
// The same of one server that has every shard.
Accounting account(const Server& server, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly);

}  // namespace flux
