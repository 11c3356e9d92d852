#include "flux/data/word_sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace flux {
namespace {

std::vector<double> negative_weights(const Vocabulary& vocabulary) {
  std::vector<double> weights;
  for (const uint64_t count : vocabulary.counts)
    weights.push_back(std::pow(static_cast<double>(count), 0.75));
  return weights;
}

double keep_probability(double share, double subsample) {
  if (subsample <= 0) return 1;
  return std::min(1.0, (std::sqrt(share / subsample) + 1) * subsample / share);
}

}  // namespace

WordSampler::WordSampler(const Vocabulary& vocabulary, double subsample)
    : entries_(std::bit_ceil(vocabulary.words.size() * 2 + 2)),
      mask_(entries_.size() - 1),
      negatives_(negative_weights(vocabulary)) {
  for (size_t i = 0; i < vocabulary.words.size(); ++i) {
    const uint64_t key = word_key(vocabulary.words[i]);
    keys_.push_back(key);
    const double share =
        static_cast<double>(vocabulary.counts[i]) / static_cast<double>(vocabulary.total);
    const double keep = keep_probability(share, subsample);
    size_t at = key_hash(key) & mask_;
    while (entries_[at].keep != 0) at = (at + 1) & mask_;
    entries_[at] = {key, std::max<uint64_t>(1, static_cast<uint64_t>(keep * 0x1p32))};
  }
}

}  // namespace flux
