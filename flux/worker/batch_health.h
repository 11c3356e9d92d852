// BatchHealth: looks at batches after they were computed, for the guard (cluster/training_guard.h).
//
// One for each trainer: add() after each batch, tell() for a report. It looks
// at every batch in the beginning and then at one in kLookEvery, at gradients more rarely, and
// costs about a thousandth of a step. The dead units of a layer are those whose bias has a gradient
// of exactly 0 in every batch of a piece, so activations need not be kept for it. Not thread-safe:
// its owner guards it. Failure: what it cannot judge it leaves out.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "flux/cluster/training_health.h"
#include "flux/nn/graph.h"
#include "flux/worker/batch_work.h"

namespace flux {

// Pieces that a coordinator has had, by lane, so that a report holds the new ones only.
class HealthTold {
 public:
  void add(const std::vector<HealthPiece>& pieces);
  // At most kHealthPiecesMax are left; others come with the next report.
  void leave_new(std::vector<HealthPiece>* pieces) const;

 private:
  std::map<uint32_t, uint64_t> newest_;
};

class BatchHealth {
 public:
  explicit BatchHealth(uint32_t lane = 0) : lane_(lane) {}

  // `predictions`: [heads][batch]; `loss`: their sum; the work has the gradients.
  void add(const Graph& graph, uint32_t phase, const BatchWork& work, const float* predictions,
           double loss);
  // Adds the latest complete pieces.
  void tell(std::vector<HealthPiece>* out) const;

 private:
  // What the labels were so far, with old ones forgotten: what a constant would predict.
  struct Labels {
    double weight = 0, sum = 0;
    std::vector<double> classes;
  };
  struct HeadLook {
    size_t index = 0;   // in Graph::heads()
    size_t column = 0;  // of labels
    bool weighted = false;
    Labels labels;
  };
  struct LayerLook {
    size_t offset = 0;  // of the bias in the flat gradient
    std::vector<uint8_t> live;
  };
  struct Phase {
    const Graph* graph = nullptr;
    std::vector<HeadLook> heads;  // as in piece.heads
    std::vector<LayerLook> layers;
    HealthPiece piece;  // open
    uint64_t batches = 0;
  };

  void begin(const Graph& graph, Phase* phase) const;
  // A head's part of one batch.
  struct Column {
    size_t n = 0;
    const float* labels = nullptr;
    const float* predictions = nullptr;
    const float* weights = nullptr;  // null: all 1
    double weight(size_t i) const { return weights == nullptr ? 1 : double{weights[i]}; }
  };

  static double cost_of_classes(const Column& of, Labels* known);
  static double constant_of(const Column& of, const Labels& known, bool rates);
  static void look_at_column(const Column& of, bool rates, double mean, Labels* known,
                             HeadHealth* head, double* model, double* constant);
  static void look_at_head(const BatchWork& work, const float* predictions, double loss,
                           HeadLook* look, HeadHealth* head);
  void close(uint32_t number, Phase* phase);

  uint32_t lane_;
  uint64_t pieces_ = 0;
  std::vector<Phase> phases_;
  std::deque<HealthPiece> complete_;
};

}  // namespace flux
