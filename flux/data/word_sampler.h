// WordSampler: which words of a sentence are kept, and which negatives stand beside them, by how
// often words come.
//
// Of frequent words only a share is kept (as word2vec does it): a word that makes up the share f of
// the corpus with the probability min(1, (sqrt(f / s) + 1) * s / f), where s is `subsample`.
// Negatives are drawn in proportion to count^0.75.
// Threads: immutable; each has its own Random. The same random numbers give the same draws.
#pragma once

#include <cstdint>
#include <vector>

#include "flux/base/key.h"
#include "flux/base/random.h"
#include "flux/data/alias_table.h"
#include "flux/data/vocabulary.h"

namespace flux {

class WordSampler {
 public:
  // `subsample` 0: every word is kept.
  WordSampler(const Vocabulary& vocabulary, double subsample);

  // Whether the word is in the vocabulary and this time kept.
  bool keep(uint64_t key, Random* random) const {
    size_t at = key_hash(key) & mask_;
    while (entries_[at].keep != 0 && entries_[at].key != key) at = (at + 1) & mask_;
    const uint64_t keep = entries_[at].keep;
    if (keep >= kAlways) return true;
    return keep != 0 && (random->next() >> 32) < keep;
  }
  uint64_t negative(Random* random) const { return keys_[negatives_.draw(random)]; }

 private:
  static constexpr uint64_t kAlways = 1ULL << 32;
  struct Entry {
    uint64_t key = 0;
    uint64_t keep = 0;  // probability, of 2^32; 0: the entry is free
  };
  std::vector<Entry> entries_;
  size_t mask_ = 0;
  std::vector<uint64_t> keys_;  // of each word of the vocabulary
  AliasTable negatives_;
};

}  // namespace flux
