// SkipGram: loss and gradients of skip-grams with negative samples over the sentences of a batch.
//
// A row of the table has two halves: the word's vector as a center (in) and as a context (out).
// Center i of a sentence has a reach drawn from 1..window; each other word j within it is a pair
// with the loss softplus(-<in_i, out_j>). Beside each pair stand `per_pair` negatives: all
// negatives of the group of sentences that i belongs to, each weighted by per_pair / their number,
// but not those that are the word j itself: softplus(<in_i, out_n>).
// All words of a group share its negatives, so scores and gradients are small matrix products over
// rows that stay in the first cache. Sentences of any length are worked off in pieces.
// Threads: one owner; memory is taken when it is made. No failure.
#pragma once

#include <cstdint>

#include "flux/base/hash.h"
#include "flux/nn/gather_many.h"
#include "flux/nn/net.h"
#include "flux/nn/net_memory.h"
#include "flux/nn/skip_gram_kernels.h"

namespace flux {

struct SkipGramShape {
  uint32_t dim = 0;        // of a half
  uint32_t all_slots = 0;  // of an example
  uint32_t words = 0;      // slot
  uint32_t negatives = 0;  // slot
  uint32_t window = 5;
  uint32_t share = 1;  // sentences of a group
  float per_pair = 5;

  KeyRange words_of(const uint32_t* begin, uint32_t example) const {
    return key_range(begin, all_slots, example, words);
  }
  KeyRange negatives_of(const uint32_t* begin, uint32_t example) const {
    return key_range(begin, all_slots, example, negatives);
  }
};

// The reach of the word at this position of the batch's keys; the same whenever it is asked.
inline uint32_t skip_gram_reach(uint64_t noise, uint32_t position, uint32_t window) {
  return 1 + static_cast<uint32_t>(((hash_pair(noise, position) >> 32) * window) >> 32);
}

// One batch. Without gradients only losses and predictions are computed.
struct SkipGramCall {
  const TableInput* table = nullptr;
  const uint32_t* begin = nullptr;  // NetInput::begin
  uint32_t batch = 0;
  uint64_t noise = 0;
  const float* weights = nullptr;  // [batch]
  float scale = 1;                 // of all gradients
  float* gradient = nullptr;       // of the table's rows, added to; null: not wanted
  float* predictions = nullptr;    // [batch]: mean probability of a pair, 0 without pairs; or null
};

class SkipGram {
 public:
  SkipGram(const SkipGramShape& shape, NetMemory* memory);
  // The sum of weight * loss over the batch.
  double run(const SkipGramCall& call);

 private:
  static constexpr uint32_t kCenters = 64;    // words of a piece
  static constexpr uint32_t kNegatives = 64;  // worked off together

  // Centers [first, last) of a sentence, and the contexts [low, high) that they reach.
  struct Piece {
    KeyRange sentence, centers, contexts;
    float weight = 1;
    uint32_t size() const { return centers.end - centers.begin; }
  };
  void run_group(uint32_t first, uint32_t last);
  uint32_t load_negatives(uint32_t first, uint32_t last, uint32_t skip);
  void store_negatives();
  void run_sentence(uint32_t example, bool pairs);
  void run_piece(const Piece& piece, bool pairs);
  void draw_reach(const Piece& piece);
  void score_pairs(const Piece& piece);
  void score_negatives(const Piece& piece);
  void forgive_hits(const Piece& piece);
  void push_centers(const Piece& piece, bool pairs);
  void push_contexts(const Piece& piece);
  // Where the row of an occurrence begins, in rows and gradients.
  size_t row_of(uint32_t occurrence) const {
    return static_cast<size_t>(call_->table->index[occurrence]) * 2 * shape_.dim;
  }
  void load_in(uint32_t occurrence, float* to) const;
  void load_out(uint32_t occurrence, float* to) const;
  void add(const float* from, float* to) const;

  const SkipGramShape shape_;
  const SkipGramKernels& kernels_;
  const uint32_t width_;  // dim, rounded up
  const uint32_t band_;   // floats per center in pair_*
  const SkipGramCall* call_ = nullptr;

  float *centers_, *contexts_;                   // rows of a piece
  float *negatives_, *negatives_gradient_;       // rows of the group's negatives
  float *pair_factors_, *pair_weights_;          // [center][context - center + window]
  float *negative_factors_, *negative_weights_;  // [center][negative_stride_]
  float* sum_;                                   // one row
  uint32_t *left_, *right_;                      // of each center: contexts before and behind it
  uint32_t *negative_rows_, *negative_places_;   // rows of the table, and occurrences
  uint32_t negative_count_ = 0, negative_stride_ = 0;
  uint32_t group_negatives_ = 0;  // all of the group
  double loss_ = 0, pair_probability_ = 0;
  uint64_t pairs_ = 0;
};

}  // namespace flux
