#include "flux/nn/skip_gram.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "flux/base/cpu.h"
#include "flux/nn/vector_math.h"

namespace flux {
namespace {

constexpr uint32_t kBlock = 16;  // scores handled together

uint32_t round_up(uint32_t n, uint32_t to) {
  return (n + to - 1) / to * to;
}

struct ScoreSums {
  double loss = 0, probability = 0;
};

// Scores become what their gradient is multiplied by: scale * weight * (sigmoid(score) - label).
// n is a multiple of kBlock; what stands where the weight is 0 may be anything.
template <bool kLabel>
ScoreSums judge(float* scores, const float* weights, uint32_t n, float scale) {
  float losses[kBlock] = {}, probabilities[kBlock] = {};
  for (uint32_t i = 0; i < n; i += kBlock) {
    for (uint32_t l = 0; l < kBlock; ++l) {
      const float w = weights[i + l];
      const float z = w > 0 ? scores[i + l] : 0.0F;
      const float u = exp_of(-std::fabs(z));
      const float p = (z >= 0 ? 1.0F : u) / (1.0F + u);
      const float signed_z = kLabel ? -z : z;
      losses[l] += w * ((signed_z > 0 ? signed_z : 0.0F) + log1p_unit(u));
      probabilities[l] += w * p;
      scores[i + l] = scale * w * (kLabel ? p - 1.0F : p);
    }
  }
  ScoreSums sums;
  for (uint32_t l = 0; l < kBlock; ++l) {
    sums.loss += static_cast<double>(losses[l]);
    sums.probability += static_cast<double>(probabilities[l]);
  }
  return sums;
}

}  // namespace

SkipGram::SkipGram(const SkipGramShape& shape, NetMemory* memory)
    : shape_(shape),
      kernels_(cpu_has_avx512() ? skip_gram_kernels_avx512() : skip_gram_kernels_avx2()),
      width_(round_up(shape.dim, kSkipGramLanes)),
      band_(2 * shape.window + kSkipGramRowsAtOnce) {
  // Products read and write up to kSkipGramRowsAtOnce - 1 rows or numbers too many.
  const auto rows = [&](uint32_t n) {
    return memory->allocate_array<float>(static_cast<size_t>(n + kSkipGramRowsAtOnce) * width_);
  };
  centers_ = rows(kCenters);
  contexts_ = rows(kCenters + 2 * shape.window);
  negatives_ = rows(kNegatives);
  negatives_gradient_ = rows(kNegatives);
  sum_ = rows(1);
  const size_t band = size_t{kCenters} * band_ + kBlock;
  pair_factors_ = memory->allocate_array<float>(band);
  pair_weights_ = memory->allocate_array<float>(band);
  const size_t all = size_t{kCenters} * kNegatives + kBlock;
  negative_factors_ = memory->allocate_array<float>(all);
  negative_weights_ = memory->allocate_array<float>(all);
  left_ = memory->allocate_array<uint32_t>(kCenters);
  right_ = memory->allocate_array<uint32_t>(kCenters);
  negative_rows_ = memory->allocate_array<uint32_t>(kNegatives);
  negative_places_ = memory->allocate_array<uint32_t>(kNegatives);
}

double SkipGram::run(const SkipGramCall& call) {
  call_ = &call;
  loss_ = 0;
  for (uint32_t first = 0; first < call.batch; first += shape_.share)
    run_group(first, std::min(call.batch, first + shape_.share));
  return loss_;
}

void SkipGram::run_group(uint32_t first, uint32_t last) {
  group_negatives_ = 0;
  for (uint32_t b = first; b < last; ++b) {
    const KeyRange keys = shape_.negatives_of(call_->begin, b);
    group_negatives_ += keys.end - keys.begin;
  }
  uint32_t done = 0;
  do {
    negative_count_ = load_negatives(first, last, done);
    for (uint32_t b = first; b < last; ++b) run_sentence(b, done == 0);
    if (call_->gradient != nullptr) store_negatives();
    done += negative_count_;
  } while (done < group_negatives_);
}

// The next of the group's negatives behind the first `skip`.
uint32_t SkipGram::load_negatives(uint32_t first, uint32_t last, uint32_t skip) {
  uint32_t n = 0;
  for (uint32_t b = first; b < last && n < kNegatives; ++b) {
    const KeyRange keys = shape_.negatives_of(call_->begin, b);
    const uint32_t skipped = std::min(skip, keys.end - keys.begin);
    skip -= skipped;
    for (uint32_t i = keys.begin + skipped; i < keys.end && n < kNegatives; ++i, ++n) {
      negative_places_[n] = i;
      negative_rows_[n] = call_->table->index[i];
      load_out(i, negatives_ + size_t{n} * width_);
    }
  }
  negative_stride_ = round_up(n, kSkipGramRowsAtOnce);
  std::memset(negatives_gradient_, 0, size_t{n} * width_ * sizeof(float));
  return n;
}

void SkipGram::load_in(uint32_t occurrence, float* to) const {
  std::memcpy(to, call_->table->rows + row_of(occurrence), shape_.dim * sizeof(float));
}

void SkipGram::load_out(uint32_t occurrence, float* to) const {
  std::memcpy(to, call_->table->rows + row_of(occurrence) + shape_.dim, shape_.dim * sizeof(float));
}

void SkipGram::add(const float* from, float* to) const {
  for (uint32_t d = 0; d < shape_.dim; ++d) to[d] += from[d];
}

void SkipGram::store_negatives() {
  for (uint32_t n = 0; n < negative_count_; ++n)
    add(negatives_gradient_ + size_t{n} * width_,
        call_->gradient + row_of(negative_places_[n]) + shape_.dim);
}

void SkipGram::run_sentence(uint32_t example, bool pairs) {
  Piece piece;
  piece.sentence = shape_.words_of(call_->begin, example);
  piece.weight = call_->weights[example];
  pair_probability_ = 0;
  pairs_ = 0;
  for (uint32_t i = piece.sentence.begin; i < piece.sentence.end; i += kCenters) {
    piece.centers = {i, std::min(i + kCenters, piece.sentence.end)};
    piece.contexts = {
        i - std::min(shape_.window, i - piece.sentence.begin),
        piece.centers.end + std::min(shape_.window, piece.sentence.end - piece.centers.end)};
    run_piece(piece, pairs);
  }
  if (pairs && call_->predictions != nullptr)
    call_->predictions[example] =
        pairs_ == 0 ? 0.0F : static_cast<float>(pair_probability_ / static_cast<double>(pairs_));
}

void SkipGram::run_piece(const Piece& piece, bool pairs) {
  draw_reach(piece);
  for (uint32_t i = 0; i < piece.size(); ++i)
    load_in(piece.centers.begin + i, centers_ + size_t{i} * width_);
  if (pairs) score_pairs(piece);
  if (negative_count_ > 0) score_negatives(piece);
  if (call_->gradient == nullptr) return;
  push_centers(piece, pairs);
  if (pairs) push_contexts(piece);
  for (uint32_t n = 0; n < negative_count_; ++n)
    kernels_.combine(negative_factors_ + n, negative_stride_, centers_, width_, piece.size(), true,
                     negatives_gradient_ + size_t{n} * width_);
}

void SkipGram::draw_reach(const Piece& piece) {
  for (uint32_t i = 0; i < piece.size(); ++i) {
    const uint32_t at = piece.centers.begin + i;
    const uint32_t reach = skip_gram_reach(call_->noise, at, shape_.window);
    left_[i] = std::min(reach, at - piece.sentence.begin);
    right_[i] = std::min(reach, piece.sentence.end - 1 - at);
  }
}

void SkipGram::score_pairs(const Piece& piece) {
  for (uint32_t j = piece.contexts.begin; j < piece.contexts.end; ++j)
    load_out(j, contexts_ + size_t{j - piece.contexts.begin} * width_);
  const uint32_t n = round_up(piece.size() * band_, kBlock);
  std::fill(pair_weights_, pair_weights_ + n, 0.0F);
  for (uint32_t i = 0; i < piece.size(); ++i) {
    const uint32_t first = piece.centers.begin + i - left_[i] - piece.contexts.begin;
    const uint32_t count = left_[i] + 1 + right_[i];
    const size_t at = size_t{i} * band_ + shape_.window - left_[i];
    kernels_.dots(centers_ + size_t{i} * width_, contexts_ + size_t{first} * width_, width_, count,
                  pair_factors_ + at);
    std::fill(pair_weights_ + at, pair_weights_ + at + count, 1.0F);
    pair_weights_[size_t{i} * band_ + shape_.window] = 0;
    pairs_ += count - 1;
  }
  const ScoreSums sums = judge<true>(pair_factors_, pair_weights_, n, call_->scale * piece.weight);
  loss_ += static_cast<double>(piece.weight) * sums.loss;
  pair_probability_ += sums.probability;
}

void SkipGram::score_negatives(const Piece& piece) {
  const uint32_t n = round_up(piece.size() * negative_stride_, kBlock);
  const float each = shape_.per_pair / static_cast<float>(group_negatives_);
  std::fill(negative_weights_ + piece.size() * negative_stride_, negative_weights_ + n, 0.0F);
  for (uint32_t i = 0; i < piece.size(); ++i) {
    float* weights = negative_weights_ + size_t{i} * negative_stride_;
    std::fill(weights, weights + negative_count_, static_cast<float>(left_[i] + right_[i]));
    std::fill(weights + negative_count_, weights + negative_stride_, 0.0F);
    kernels_.dots(centers_ + size_t{i} * width_, negatives_, width_, negative_count_,
                  negative_factors_ + size_t{i} * negative_stride_);
  }
  forgive_hits(piece);
  const ScoreSums sums =
      judge<false>(negative_factors_, negative_weights_, n, call_->scale * piece.weight * each);
  loss_ += static_cast<double>(piece.weight * each) * sums.loss;
}

// A negative that is a context itself does not stand beside that pair.
void SkipGram::forgive_hits(const Piece& piece) {
  const uint32_t* rows = call_->table->index;
  const uint32_t *first = negative_rows_, *last = first + negative_count_;
  for (uint32_t j = piece.contexts.begin; j < piece.contexts.end; ++j) {
    if (std::find(first, last, rows[j]) == last) continue;
    for (uint32_t i = 0; i < piece.size(); ++i) {
      const uint32_t at = piece.centers.begin + i;
      if (at == j || j + left_[i] < at || j > at + right_[i]) continue;
      for (uint32_t n = 0; n < negative_count_; ++n)
        if (rows[j] == negative_rows_[n]) negative_weights_[i * negative_stride_ + n] -= 1;
    }
  }
}

void SkipGram::push_centers(const Piece& piece, bool pairs) {
  for (uint32_t i = 0; i < piece.size(); ++i) {
    if (pairs) {
      const uint32_t first = piece.centers.begin + i - left_[i] - piece.contexts.begin;
      kernels_.combine(pair_factors_ + size_t{i} * band_ + shape_.window - left_[i], 1,
                       contexts_ + size_t{first} * width_, width_, left_[i] + 1 + right_[i], false,
                       sum_);
    }
    kernels_.combine(negative_factors_ + size_t{i} * negative_stride_, 1, negatives_, width_,
                     negative_count_, pairs, sum_);
    add(sum_, call_->gradient + row_of(piece.centers.begin + i));
  }
}

void SkipGram::push_contexts(const Piece& piece) {
  for (uint32_t j = piece.contexts.begin; j < piece.contexts.end; ++j) {
    const uint32_t first = std::max(piece.centers.begin, j - std::min(j, shape_.window));
    const uint32_t last = std::min(piece.centers.end, j + shape_.window + 1);
    if (first >= last) continue;
    const uint32_t i = first - piece.centers.begin;
    // From center to center the context moves one place to the left.
    kernels_.combine(pair_factors_ + size_t{i} * band_ + (j + shape_.window - first), band_ - 1,
                     centers_ + size_t{i} * width_, width_, last - first, false, sum_);
    add(sum_, call_->gradient + row_of(j) + shape_.dim);
  }
}

}  // namespace flux
