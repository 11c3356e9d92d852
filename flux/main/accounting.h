// Accounting: what became of every example, from the integer counters in the tables.
//
// Each row counts the occurrences of its key that were ever applied to it. Their sum must be
// (examples x sparse features) where each feature has one key (`slots` is 0 where it may have any
// number: then only dense counters speak); with one key per example, each key's count says exactly
// which example was lost or doubled. The ledger is not asked: this is what checks the ledger. Pure;
// not while training.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flux/api/server_admin.h"
#include "flux/checkpoint/manifest.h"
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

// `passes`: every pass that was trained completely, and of an open one what every shard has.
// `partly`: examples of an open pass that only some shards have. They will be trained again for
// the others, so any part of them may be in the counters without being lost or doubled.
// `totals`: over all servers; of a job with one key per example with the counts that
// expected_counts(passes) asks for.
Accounting account(const JobTotals& totals, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly);
std::vector<ExpectedCount> expected_counts(std::span<const ClosedPass> passes);
// The same of one server that has every shard.
Accounting account(const Server& server, std::span<const ClosedPass> passes, uint32_t slots,
                   bool key_per_example, uint64_t partly);

}  // namespace flux
