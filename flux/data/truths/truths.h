// The kinds of made truths (made_truth.h), and what they share.
// Pure functions; internal to data/.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "flux/data/made_truth.h"
#include "flux/data/truths/hidden_rows.h"

namespace flux {

std::unique_ptr<const MadeTruth> bends_truth(uint64_t seed, const TruthMoment& moment);
std::unique_ptr<const MadeTruth> crosses_truth(uint64_t seed, const TruthMoment& moment);
std::unique_ptr<const MadeTruth> field_pairs_truth(uint64_t seed, const TruthMoment& moment);
std::unique_ptr<const MadeTruth> fields_truth(uint64_t seed, const TruthMoment& moment);
std::unique_ptr<const MadeTruth> sequence_truth(uint64_t seed, const TruthMoment& moment);
std::unique_ptr<const MadeTruth> tasks_truth(uint64_t seed, const TruthMoment& moment);
std::unique_ptr<const MadeTruth> towers_truth(uint64_t seed, const TruthMoment& moment);

// The data section of slots f0, f1, ...; `labels` is a line of its own, or empty.
inline std::string numbered_slots_yaml(uint32_t slots, const std::string& labels = "") {
  std::string yaml = "data:\n  format: feasign\n" + labels + "  slots:";
  for (uint32_t s = 0; s < slots; ++s) yaml += fmt::format("\n    - {{name: f{}}}", s);
  return yaml + "\n";
}
inline void put_numbered(std::string* out, uint32_t slot, uint64_t key) {
  fmt::format_to(std::back_inserter(*out), " f{}:{}", slot, key);
}

inline void put_feature(std::string* out, const char* name, uint64_t key) {
  fmt::format_to(std::back_inserter(*out), " {}:{}", name, key);
}

// Small keys are frequent, as in real data.
inline uint64_t skewed(Random* random, uint64_t n) {
  const double u = random->uniform();
  return static_cast<uint64_t>(u * u * static_cast<double>(n));
}

}  // namespace flux
