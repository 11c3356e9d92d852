#include "flux/data/made_truth.h"

#include <algorithm>
#include <array>

#include "flux/base/text.h"
#include "flux/data/truths/truths.h"

namespace flux {
namespace {

struct Kind {
  const char* name;
  const char* doc;
  std::unique_ptr<const MadeTruth> (*make)(uint64_t seed, const TruthMoment& moment);
};

constexpr std::array<Kind, 7> kKinds = {{
    {"bends", "6 slots whose hidden sums count by their size, not their sign (networks)",
     bends_truth},
    {"crosses", "6 slots whose hidden numbers count three at a time (DCN-v2, xDeepFM)",
     crosses_truth},
    {"field_pairs", "6 slots with another hidden vector for each slot they meet (FFM)",
     field_pairs_truth},
    {"fields", "8 slots whose hidden vectors meet in pairs (FM, DeepFM)", fields_truth},
    {"sequence", "an item, and a history of items whose categories decide (DIN)", sequence_truth},
    {"tasks", "two labels for which 3 slots choose among hidden sums of 3 others (MMoE, PLE)",
     tasks_truth},
    {"towers", "users and items liked by the product of hidden vectors (DSSM)", towers_truth},
}};

}  // namespace

const std::vector<std::string>& made_truth_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kKinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

Result<std::unique_ptr<const MadeTruth>> make_truth(const std::string& kind, uint64_t seed,
                                                    const TruthMoment& moment) {
  for (const Kind& known : kKinds)
    if (kind == known.name) return known.make(seed, moment);
  return invalid("no data of kind '{}' can be made{}; kinds: {}", kind,
                 did_you_mean(kind, made_truth_kinds()), join(made_truth_kinds(), ", "));
}

std::string made_truth_doc(const std::string& kind) {
  for (const Kind& known : kKinds)
    if (kind == known.name) return known.doc;
  return "";
}

}  // namespace flux
