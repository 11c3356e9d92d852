// ModelShape: how large the parts of a model are, which both ends of the data path must agree on,
// sent with every pull and push so that a difference is seen. Values; pure; no failure.
//
// A job with several phases (networks over the same rows, trained one after the other) has one
// vector of dense parameters in which each phase has a range of its own, and a phase reads and
// changes some of the tables. A dense shard lies in one range.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "flux/api/dense_shards.h"

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

struct ModelShape {
  uint32_t sparse_shards = 0;
  std::vector<uint32_t> dims;  // floats per row, by table
  uint64_t parameters = 0;     // floats in the flat dense vector
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
  bool operator==(const ModelShape&) const = default;
};

std::string to_string(const ModelShape& shape);  // "8 shards, tables of 4 and 1, 40000 parameters"

}  // namespace flux
