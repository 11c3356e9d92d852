// What replays of one job at several ages say together, for people and as JSON: the drop against no
// age, from how many workers on it is too much, and what the servers' links would carry. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "flux/main/replay.h"

namespace flux {

// The conditions of all of them.
struct ReplaySetting {
  std::string job, precision;
  uint64_t seed = 1;
  uint32_t batch = 0;        // examples
  uint32_t value_bytes = 4;  // on the wire
  double threshold = 0.001;  // of the AUC, whose drop is too much
};

// By how much the AUC is below that of the first result, which has no staleness; one that diverged
// ranks nothing: 0.5.
double auc_drop(const ReplayResult& base, const ReplayResult& result);
// Workers with one batch each in flight from which on the drop exceeds the threshold: between the
// ages that were tried, in a straight line. Nothing: never in what was tried.
std::optional<double> quality_falls_from(std::span<const ReplayResult> results, double threshold);
// What a link of 25 Gbit/s carries, in batches a second.
double batches_per_link(const ReplaySetting& setting, const ReplayTraffic& traffic);

// Rising staleness, the first without.
std::string replay_text(const ReplaySetting& setting, std::span<const ReplayResult> results);
std::string replay_json(const ReplaySetting& setting, std::span<const ReplayResult> results);

}  // namespace flux
