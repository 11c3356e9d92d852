// HealthPiece: what a worker measured of its training over a few batches, for the guard.
//
// Sums only, so pieces add up in any order; the coordinator adds those of all workers into windows
// (cluster/training_guard.h). A piece is complete in itself and has a number, so one that is told
// twice counts once, and one that is lost is only a little less evidence: nothing jumps when
// another coordinator takes over or a worker is started anew. Not all batches are looked at: sums
// are over those that were. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flux {

constexpr size_t kHealthPiecesMax = 256;  // in one report
constexpr size_t kHealthPartsMax = 64;    // heads, and layers, of one piece
constexpr size_t kHealthNameMax = 128;

// What a head minimises, and so what the loss of a constant is.
enum class HeadKind : uint8_t { kLogLoss, kSquares, kClasses };

struct HeadHealth {
  std::string name;  // "": the only one with a label
  HeadKind kind = HeadKind::kLogLoss;
  uint64_t examples = 0, batches = 0;
  double loss = 0;         // of the predictions
  double constant = 0;     // of the mean of the labels before each batch
  double gap_squares = 0;  // by batch: the square of (loss - constant)
  // Not of classes.
  double label = 0, label_squares = 0, prediction = 0, prediction_squares = 0, product = 0;
  // Of log loss: predictions nearer than kSureWithin to 0 or 1, how many of them were wrong, and
  // how many would be if they meant what they say.
  double sure = 0, sure_wrong = 0, sure_expected = 0;
};
constexpr double kSureWithin = 1e-4;

// A layer behind whose relu some units answered no example of any batch.
struct LayerHealth {
  std::string name;
  uint32_t units = 0, dead = 0;
};

struct HealthPiece {
  uint32_t lane = 0;
  uint64_t number = 0;  // from 1, rising by lane
  uint32_t phase = 0;   // of the job's networks
  uint64_t examples = 0, batches = 0;
  double loss = 0;          // of what is minimised
  double loss_squares = 0;  // by batch: the square of its loss / its examples
  uint64_t norms = 0;       // gradients that were measured
  double norm = 0;          // sum of their norms
  std::vector<HeadHealth> heads;
  std::vector<LayerHealth> layers;
};

}  // namespace flux
