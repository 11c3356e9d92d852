// TrainingGuard: tells a training that is sick from one that is well, while it runs.
//
// Pieces of all workers are added up into windows, phase by phase. A warning wants evidence in more
// than one window, beyond what the number of examples and batches leaves to chance, and a loss that
// no longer falls: the start of a run, rare labels and drifting data are no sickness. What cannot
// be judged (a loss without labels, a ranking, too few examples) is not judged. Each warning is
// said once, again only after it was over, and all of them are bounded in number. Pure: no clock,
// no thread; one caller. Values that are no numbers are left out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flux/cluster/training_health.h"

namespace flux {

struct TrainingWarning {
  std::string id;         // "worse_than_constant"; docs/using/guard.md lists them
  std::string phase;      // of a job with several
  std::string part;       // the head or layer; "": the only one, or the whole network
  std::string text;       // one sentence: what is seen, the likely cause, what to set
  uint64_t examples = 0;  // of the phase, that were seen by then
  bool active = true;     // false: it is over
};
// "phase join: head click: the loss ...".
std::string to_string(const TrainingWarning& warning);

// One head on test data; see metrics/metric_values.h.
struct TestedHead {
  std::string phase, head;
  double examples = 0;
  std::optional<double> auc, log_loss, label_mean;
};

class TrainingGuard {
 public:
  // Names of phases; at most one: they are not named.
  explicit TrainingGuard(std::vector<std::string> phases = {});

  // Warnings that begin with this piece.
  std::vector<TrainingWarning> take(const HealthPiece& piece);
  // Warnings that begin with this test; those of the test before are over.
  std::vector<TrainingWarning> tested(std::span<const TestedHead> heads);

  // Every warning there was, in the order in which they began.
  const std::vector<TrainingWarning>& warnings() const { return warnings_; }
  bool suspect() const;  // some are not over

 private:
  struct Head {
    HeadHealth window;
    std::deque<HeadHealth> windows;  // the latest, newest last
    uint32_t worse = 0, sure = 0;    // windows that speak for a warning
    std::optional<double> excess;    // of the window before: (loss - constant) / constant
    bool was_good = false;           // better than the constant in some window
  };
  struct Layer {
    double units = 0, dead = 0, pieces = 0;  // of the window
    uint32_t windows = 0;                    // that speak for a warning
  };
  struct Phase {
    uint64_t seen = 0, batches = 0;  // all
    HealthPiece window;              // without parts
    std::map<std::string, Head> heads;
    std::map<std::string, Layer> layers;
    std::optional<double> best_loss, least_norm;  // of windows
    uint32_t rises = 0, blows = 0;
    std::optional<double> best_badness;
  };
  // What a sentence is about.
  struct Place {
    uint32_t phase;
    std::string part;
    const char* kind;  // "head", "layer"
  };

  void add(const HealthPiece& piece, Phase* phase);
  bool full(const Phase& phase) const;
  void judge(uint32_t number, Phase* phase);
  void judge_constant(const Place& place, const Phase& phase, Head* head);
  void judge_learning(const Place& place, const Phase& phase, const Head& head);
  void judge_sure(const Place& place, const Phase& phase, Head* head);
  void judge_layer(const Place& place, const Phase& phase, Layer* layer);
  void judge_loss(uint32_t number, Phase* phase);
  void judge_norm(uint32_t number, Phase* phase);
  void set(const char* id, const Place& place, uint64_t examples, bool sick,
           const std::string& text);

  std::vector<std::string> phases_;
  std::map<uint32_t, Phase> state_;
  std::vector<TrainingWarning> warnings_;
  std::vector<size_t> begun_;  // indexes of warnings, during a call
};

}  // namespace flux
