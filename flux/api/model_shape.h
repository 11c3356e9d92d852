// ModelShape: how large the parts of a model are, which both ends of the data path must agree on,
// sent with every pull and push so that a difference is seen.
//
// Keys belong to groups, by their slot. A table has rows for all keys or for those of one group.
// Each group has sparse shards of its own, one after the other, so the rows of a table are those of
// a run of shards, and a shard's tables are known from its number.
// A job with several phases (networks over the same rows, trained one after the other) has one
// vector of dense parameters in which each phase has a range of its own, and a phase reads and
// changes some of the tables. A dense shard lies in one range.
// Values; pure; no failure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flux/api/dense_shards.h"
#include "flux/base/key.h"

namespace flux {

// What the batches of one phase pull and push.
struct PhaseShape {
  std::vector<uint32_t> dims;  // floats per row, by table of the model; 0: not of this phase
  uint64_t parameters = 0;     // floats of its dense range; ranges lie in the order of phases
  bool operator==(const PhaseShape&) const = default;
};

// The same, found in a ModelShape, which it points into.
struct PhaseView {
  std::span<const uint32_t> dims;
  uint64_t dense_begin = 0, dense_end = 0;   // of the flat vector
  uint32_t first_dense = 0, last_dense = 0;  // its dense shards, counted from 0: [first, last)

  bool has_table(size_t t) const { return dims[t] > 0; }
  bool has_dense(uint32_t d) const { return d >= first_dense && d < last_dense; }
  uint64_t parameters() const { return dense_end - dense_begin; }
};

struct ShardRange {
  uint32_t begin = 0, end = 0;
  bool has(uint32_t shard) const { return begin <= shard && shard < end; }
};

struct ModelShape {
  uint32_t sparse_shards = 0;
  std::vector<uint32_t> dims;  // floats per row, by table
  uint64_t parameters = 0;     // floats in the flat dense vector
  uint32_t groups = 1;         // of keys; at most sparse_shards
  // By table: 0: it has rows for all keys; g: for those of group g, counted from 1. Empty: all 0.
  std::vector<uint32_t> table_groups = {};
  // Empty: whatever the phase of a batch, it has all of the model.
  std::vector<PhaseShape> phases = {};

  uint32_t dense_shards() const;
  uint32_t all_shards() const { return sparse_shards + dense_shards(); }
  // Where dense shard `d` (counted from 0) begins in the flat vector; d may be dense_shards().
  uint64_t dense_begin(uint32_t d) const;
  uint64_t dense_size(uint32_t d) const { return dense_begin(d + 1) - dense_begin(d); }

  bool has_phase(uint32_t phase) const { return phases.empty() || phase < phases.size(); }
  PhaseView phase(uint32_t phase) const;  // that it has
  uint32_t phase_of_dense(uint32_t d) const;
  // Groups are counted from 0 here.
  ShardRange group_shards(uint32_t group) const {
    return {static_cast<uint32_t>(uint64_t{sparse_shards} * group / groups),
            static_cast<uint32_t>(uint64_t{sparse_shards} * (group + 1) / groups)};
  }
  uint32_t group_of(uint32_t sparse_shard) const;
  uint32_t shard_of_key(uint64_t key, uint32_t group) const {
    const ShardRange range = group_shards(group);
    return range.begin + shard_of(key, range.end - range.begin);
  }
  ShardRange table_shards(size_t table) const {
    if (table_groups.empty() || table_groups[table] == 0) return {0, sparse_shards};
    return group_shards(table_groups[table] - 1);
  }
  // By table: floats per row of a key of this group that a phase has; 0: none there.
  std::vector<uint32_t> widths(uint32_t phase, uint32_t group) const;
  bool operator==(const ModelShape&) const = default;
};

std::string to_string(const ModelShape& shape);  // "8 shards, tables of 4 and 1, 40000 parameters"

}  // namespace flux
