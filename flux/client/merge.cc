#include "flux/client/merge.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace flux {
namespace {

void add_scaled(float* out, const float* in, float weight, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] += weight * in[i];
}

}  // namespace

std::vector<float> mean_weights(std::span<const uint64_t> examples) {
  const auto total = static_cast<double>(std::accumulate(examples.begin(), examples.end(), 0ULL));
  std::vector<float> weights;
  for (const uint64_t n : examples)
    weights.push_back(total > 0 ? static_cast<float>(static_cast<double>(n) / total) : 0.0F);
  return weights;
}

float merged_lr_scale(std::span<const PushPart> parts) {
  LrScaleMean mean;
  for (const PushPart& part : parts) mean.add(part.lr_scale, part.examples);
  return mean.value();
}

MergedPush::MergedPush(uint32_t shards, std::vector<uint32_t> dims, size_t parameters,
                       std::vector<FlatRange> sums)
    : shards_(shards),
      dims_(std::move(dims)),
      sums_(std::move(sums)),
      plan_(shards),
      tables_(dims_.size()),
      pointers_(dims_.size()),
      dense_(parameters) {}

void MergedPush::merge(std::span<const PushPart> parts) {
  all_keys_.clear();
  for (const PushPart& part : parts)
    all_keys_.insert(all_keys_.end(), part.keys.keys, part.keys.keys + part.keys.begin[shards_]);
  plan_.build(all_keys_);
  counts_.assign(plan_.unique(), 0);
  for (size_t t = 0; t < dims_.size(); ++t) {
    tables_[t].resize_discard(plan_.unique() * dims_[t]);
    tables_[t].fill(0.0F);
    pointers_[t] = tables_[t].data();
  }
  dense_.fill(0.0F);
  examples_ = 0;
  size_t first = 0;
  for (const PushPart& part : parts) {
    const uint32_t* position = plan_.index().data() + first;
    const size_t n = part.keys.begin[shards_];
    for (size_t i = 0; i < n; ++i) counts_[position[i]] += part.counts[i];
    for (size_t t = 0; t < dims_.size(); ++t)
      for (size_t i = 0; i < n; ++i)
        add_scaled(tables_[t].data() + size_t{position[i]} * dims_[t],
                   part.tables[t] + i * dims_[t], part.weight, dims_[t]);
    for_each_part(sums_, 0, dense_.size(), [&](uint64_t begin, uint64_t end, bool is_sum) {
      add_scaled(dense_.data() + begin, part.dense + begin, is_sum ? 1.0F : part.weight,
                 end - begin);
    });
    examples_ += part.examples;
    first += n;
  }
}

uint64_t MergedPush::bytes() const {
  uint64_t floats = dense_.size();
  for (const Buffer<float>& table : tables_) floats += table.size();
  return floats * sizeof(float);
}

}  // namespace flux
