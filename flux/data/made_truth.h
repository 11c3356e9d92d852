// MadeTruth: a hidden model from which feasign lines are drawn, so that what a model can reach is
// known beforehand. Each kind rewards one structure of models; one file each in data/truths/.
//
// Threads: immutable; each thread has its own Random. The same truth seed and moment give the same
// truth.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flux/base/random.h"
#include "flux/base/status.h"
#include "flux/data/truth_moment.h"

namespace flux {

// One drawn example; reused.
struct MadeExample {
  std::vector<double> logits;  // of each label, as the truth has them
  std::string features;        // " user:17 item:3", behind the labels in the line
};

class MadeTruth {
 public:
  virtual ~MadeTruth() = default;
  virtual std::vector<std::string> labels() const = 0;
  // The `data` section of a job that reads it, without the files.
  virtual std::string yaml() const = 0;
  // Draws features and logits; labels follow from the logits.
  virtual void draw(Random* random, MadeExample* out) const = 0;
};

// Their names, sorted: "bends", "crosses", ...
const std::vector<std::string>& made_truth_kinds();
// kInvalid for an unknown kind. The moment's lift is no part of the truth's logits.
Result<std::unique_ptr<const MadeTruth>> make_truth(const std::string& kind, uint64_t seed,
                                                    const TruthMoment& moment = {});

// One sentence for people about a kind.
std::string made_truth_doc(const std::string& kind);

}  // namespace flux
