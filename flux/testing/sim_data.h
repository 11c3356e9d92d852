// SimData: the tiny data set of a simulated job: made from a few numbers, held by nobody.
//
// Every example has a key of its own (so a count says which example was applied how often), one key
// that it shares with others, and one dense feature. A pass is one file whose name says its number,
// so that a worker can open it from its geometry alone, as it opens real files.
// Pure values; safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "flux/data/dataset.h"
#include "flux/data/geometry.h"

namespace flux {

constexpr uint32_t kSimSlots = 2;
constexpr uint32_t kSimDense = 1;

// Records that cannot be trained; whatever batch has one of them is bad in every epoch.
struct SimFlaws {
  std::set<uint64_t> not_finite;  // the dense feature is no number
  std::set<uint64_t> deadly;      // the process that reads it dies
  bool left_out = false;          // a planted bug: readers go on without them
  bool has(uint64_t record) const { return not_finite.contains(record) || deadly.contains(record); }
};

struct SimPass {
  uint32_t pass = 0;
  uint32_t blocks = 1;
  uint32_t block_records = 1;
  uint32_t last_records = 1;  // of the last block
  uint32_t batch_size = 1;
  uint64_t shuffle_seed = 0;
  SimFlaws flaws = {};
};

Geometry sim_geometry(const SimPass& pass);
// The pass that a geometry of sim_geometry() belongs to.
Result<uint32_t> sim_pass_of(const Geometry& geometry);

// Keys of record `record` of a pass: its own, then the shared one.
uint64_t sim_own_key(uint32_t pass, uint64_t record);
uint64_t sim_shared_key(uint32_t pass, uint64_t record);

// `die` is called for a deadly record, whose batch is then not read.
Result<std::unique_ptr<Dataset>> open_sim_dataset(const Geometry& geometry, SimFlaws flaws = {},
                                                  std::function<void()> die = nullptr);

}  // namespace flux
