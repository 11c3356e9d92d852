#include "flux/data/feature_plan.h"

#include <algorithm>
#include <map>

#include "flux/data/feature_check.h"
#include "flux/data/log1p.h"

namespace flux {

FeaturePlan::FeaturePlan(const DataOptions& options)
    : log1p_(options.dense_transform == "log1p"),
      values_(features_of(options).values),
      many_keys_(features_of(options).many_keys) {
  std::map<std::string, uint32_t> keys, numbers;  // columns by name
  for (const std::string& name : raw_slots(options)) keys.emplace(name, keys.size());
  for (const std::string& name : raw_numbers(options)) numbers.emplace(name, numbers.size());
  raw_slots_ = static_cast<uint32_t>(keys.size());
  raw_numbers_ = static_cast<uint32_t>(numbers.size());
  for (const FeatureOptions& feature : options.features) {
    auto& to = find_feature(feature.op)->makes_numbers ? numbers : keys;
    to.emplace(feature.name, to.size());
  }
  key_columns_ = static_cast<uint32_t>(keys.size());
  number_columns_ = static_cast<uint32_t>(numbers.size());
  std::vector<bool> slot_wanted(key_columns_), number_wanted(number_columns_);
  for (const size_t i : feature_order(options)) {
    const FeatureOptions& feature = options.features[i];
    const FeatureDef& def = *find_feature(feature.op);
    Step step{def.make(feature), def.reads_numbers, def.makes_numbers, {}, 0};
    for (const std::string& source : feature.of) {
      step.sources.push_back(def.reads_numbers ? numbers.at(source) : keys.at(source));
      (def.reads_numbers ? number_wanted : slot_wanted)[step.sources.back()] = true;
    }
    step.target = def.makes_numbers ? numbers.at(feature.name) : keys.at(feature.name);
    steps_.push_back(std::move(step));
  }
  for (const std::string& name : features_of(options).slot_names)
    if (keys.contains(name)) shown_.push_back(keys.at(name));
  for (const uint32_t column : shown_) slot_wanted[column] = true;
  for (uint32_t c = 0; c < raw_slots_; ++c)
    if (slot_wanted[c]) wanted_slots_.push_back(c);
  for (uint32_t c = 0; c < raw_numbers_; ++c)
    if (number_wanted[c]) wanted_numbers_.push_back(c);
  nothing_to_do_ = options.key_per_example || (steps_.empty() && shown_.size() == raw_slots_);
}

void FeaturePlan::apply(Batch* batch) const {
  if (nothing_to_do_) {
    if (log1p_) log1p_relu(batch->dense_values);
    return;
  }
  Columns columns;
  columns.keys.resize(key_columns_);
  columns.numbers.resize(number_columns_);
  take_columns(*batch, &columns);
  for (const Step& step : steps_) {
    FeatureInput in;
    in.examples = batch->size;
    for (const uint32_t source : step.sources) {
      if (step.reads_numbers)
        in.numbers.push_back(&columns.numbers[source]);
      else
        in.keys.push_back(&columns.keys[source]);
    }
    if (step.makes_numbers)
      step.kernel->make_numbers(in, &columns.numbers[step.target]);
    else
      step.kernel->make_keys(in, &columns.keys[step.target]);
  }
  put_keys(columns, batch);
  if (log1p_) log1p_relu(batch->dense_values);
  put_numbers(columns, batch);
}

void FeaturePlan::take_columns(const Batch& batch, Columns* columns) const {
  for (const uint32_t slot : wanted_slots_) {
    KeyColumn& column = columns->keys[slot];
    if (batch.begin.empty()) {
      column.keys.resize(batch.size);
      for (uint32_t i = 0; i < batch.size; ++i)
        column.keys[i] = batch.keys[size_t{i} * raw_slots_ + slot];
      continue;
    }
    column.begin.reserve(batch.size + 1);
    column.begin.push_back(0);
    for (uint32_t i = 0; i < batch.size; ++i) {
      const size_t place = size_t{i} * raw_slots_ + slot;
      const auto first = static_cast<ptrdiff_t>(batch.begin[place]);
      const auto last = static_cast<ptrdiff_t>(batch.begin[place + 1]);
      column.keys.insert(column.keys.end(), batch.keys.begin() + first, batch.keys.begin() + last);
      if (!batch.values.empty())
        column.values.insert(column.values.end(), batch.values.begin() + first,
                             batch.values.begin() + last);
      column.begin.push_back(static_cast<uint32_t>(column.keys.size()));
    }
  }
  for (const uint32_t number : wanted_numbers_) {
    NumberColumn& column = columns->numbers[number];
    column.resize(batch.size);
    for (uint32_t i = 0; i < batch.size; ++i)
      column[i] = batch.dense_values[size_t{i} * raw_numbers_ + number];
  }
}

void FeaturePlan::put_one_key_each(const Columns& columns, Batch* batch) const {
  batch->keys.resize(size_t{batch->size} * shown_.size());
  for (size_t s = 0; s < shown_.size(); ++s) {
    const std::vector<uint64_t>& keys = columns.keys[shown_[s]].keys;
    for (uint32_t i = 0; i < batch->size; ++i) batch->keys[i * shown_.size() + s] = keys[i];
  }
}

void FeaturePlan::put_keys(const Columns& columns, Batch* batch) const {
  batch->slots = static_cast<uint32_t>(shown_.size());
  batch->values.clear();
  if (!many_keys_) return put_one_key_each(columns, batch);
  batch->keys.clear();
  batch->begin.assign(1, 0);
  batch->begin.reserve(size_t{batch->size} * shown_.size() + 1);
  for (uint32_t i = 0; i < batch->size; ++i) {
    for (const uint32_t c : shown_) {
      const KeyColumn& column = columns.keys[c];
      const size_t first = column.first(i), last = column.last(i);
      for (size_t k = first; k < last; ++k) batch->keys.push_back(column.keys[k]);
      for (size_t k = first; k < last && values_; ++k)
        batch->values.push_back(column.values.empty() ? 1.0F : column.values[k]);
      batch->begin.push_back(static_cast<uint32_t>(batch->keys.size()));
    }
  }
}

void FeaturePlan::put_numbers(const Columns& columns, Batch* batch) const {
  batch->dense = number_columns_;
  if (number_columns_ == raw_numbers_) return;
  std::vector<float> all(size_t{batch->size} * number_columns_);
  for (uint32_t i = 0; i < batch->size; ++i) {
    float* to = all.data() + size_t{i} * number_columns_;
    std::copy_n(batch->dense_values.begin() + static_cast<ptrdiff_t>(size_t{i} * raw_numbers_),
                raw_numbers_, to);
    for (uint32_t c = raw_numbers_; c < number_columns_; ++c) to[c] = columns.numbers[c][i];
  }
  batch->dense_values = std::move(all);
}

}  // namespace flux
