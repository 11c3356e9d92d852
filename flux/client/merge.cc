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

MergedPush::MergedPush(const ModelShape& shape, std::vector<FlatRange> sums)
    : shape_(shape),
      sums_(std::move(sums)),
      plan_(shape),
      tables_(shape.dims.size()),
      pointers_(shape.dims.size()),
      dense_(shape.parameters) {}

void MergedPush::merge(std::span<const PushPart> parts) {
  all_keys_.clear();
  all_groups_.clear();
  for (const PushPart& part : parts) {
    const uint32_t* begin = part.keys.begin;
    all_keys_.insert(all_keys_.end(), part.keys.keys, part.keys.keys + begin[shape_.sparse_shards]);
    for (uint32_t g = 0; g < shape_.groups && shape_.groups > 1; ++g) {
      const ShardRange shards = shape_.group_shards(g);
      all_groups_.insert(all_groups_.end(), begin[shards.end] - begin[shards.begin],
                         static_cast<uint8_t>(g));
    }
  }
  plan_.build(all_keys_, all_groups_);
  counts_.assign(plan_.unique(), 0);
  for (size_t t = 0; t < shape_.dims.size(); ++t) {
    const ShardRange shards = shape_.table_shards(t);
    tables_[t].resize_discard((plan_.begin()[shards.end] - plan_.begin()[shards.begin]) *
                              shape_.dims[t]);
    tables_[t].fill(0.0F);
    pointers_[t] = tables_[t].data();
  }
  dense_.fill(0.0F);
  examples_ = 0;
  size_t first = 0;
  for (const PushPart& part : parts) {
    add_rows(part, plan_.index().data() + first);
    for_each_part(sums_, 0, dense_.size(), [&](uint64_t begin, uint64_t end, bool is_sum) {
      add_scaled(dense_.data() + begin, part.dense + begin, is_sum ? 1.0F : part.weight,
                 end - begin);
    });
    examples_ += part.examples;
    first += part.keys.begin[shape_.sparse_shards];
  }
}

void MergedPush::add_rows(const PushPart& part, const uint32_t* position) {
  const size_t n = part.keys.begin[shape_.sparse_shards];
  for (size_t i = 0; i < n; ++i) counts_[position[i]] += part.counts[i];
  for (size_t t = 0; t < shape_.dims.size(); ++t) {
    const ShardRange shards = shape_.table_shards(t);
    const size_t dim = shape_.dims[t];
    const size_t from = part.keys.begin[shards.begin], to = plan_.begin()[shards.begin];
    for (size_t i = from; i < part.keys.begin[shards.end]; ++i)
      add_scaled(tables_[t].data() + (position[i] - to) * dim, part.tables[t] + (i - from) * dim,
                 part.weight, dim);
  }
}

uint64_t MergedPush::bytes() const {
  uint64_t floats = dense_.size();
  for (const Buffer<float>& table : tables_) floats += table.size();
  return floats * sizeof(float);
}

}  // namespace flux
