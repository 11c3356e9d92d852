// Records that their format refuses, and data.bad_records, which sets some of them aside.
//
// They are looked for before a pass begins, by parsing all of its data once; the geometry then says
// which lines are no records, so that everybody trains the same ones and every count is exact.
// Threads: as said. Failure: kInvalid if there are more than allowed, with the first ones; what
// reading fails with otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "flux/data/dataset.h"

namespace flux {

struct BadRecord {
  uint32_t block = 0, line = 0;  // line within the block, from 0
  std::string place;             // bytes: "a.tsv:200..211 (record 21)"
  Status why;                    // "a.tsv:21:8: what is wrong, what is allowed"
};

// Those of one block of `data`, which was opened with `options` and without shuffling.
Result<std::vector<BadRecord>> find_bad_records(const Dataset& data, const DataOptions& options,
                                                uint32_t block);

// Looks at all of *geometry and takes the bad ones out of it, at most options.bad_records.
// Cancelled soon after *stop (if given) turns true.
Result<std::vector<BadRecord>> set_aside_bad_records(const DataOptions& options, unsigned threads,
                                                     const std::atomic<bool>* stop,
                                                     Geometry* geometry);

// kInvalid, with what is wrong with the first of `found` bad records.
Status too_many_bad_records(const std::string& first, uint64_t found, uint64_t allowed);

// Lines for people and programs: place, tab, why.
std::string bad_records_text(const std::vector<BadRecord>& bad);

}  // namespace flux
