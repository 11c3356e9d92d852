#include "flux/table/reference_table.h"

#include <algorithm>

#include "flux/base/hash.h"
#include "flux/optimizer/reference.h"

namespace flux {

ReferenceTable::ReferenceTable(const TableOptions& options)
    : options_(options), optimizer_(make_reference_optimizer(options.optimizer)) {}

ReferenceTable::Row ReferenceTable::fresh_row(Key key) const {
  const size_t dim = options_.dim;
  Row row;
  row.floats.assign(dim + optimizer_->state_size(dim), 0.0F);
  if (options_.init == "uniform") {
    for (size_t i = 0; i < dim; ++i) {
      const float u = hash_uniform(key, options_.seed, i);
      row.floats[i] = (u + u - 1.0F) * options_.init_scale;
    }
  }
  optimizer_->init_state(row.floats.data() + dim, dim);
  return row;
}

void ReferenceTable::pull(std::span<const Key> keys, float* out) const {
  for (const Key key : keys) {
    const auto found = rows_.find(key);
    const Row row = found != rows_.end() ? found->second : fresh_row(key);
    out = std::copy_n(row.floats.begin(), options_.dim, out);
  }
}

void ReferenceTable::push(std::span<const Key> keys, const float* gradients, const uint32_t* counts,
                          float lr_scale) {
  for (size_t i = 0; i < keys.size(); ++i) {
    auto found = rows_.find(keys[i]);
    if (found == rows_.end()) found = rows_.emplace(keys[i], fresh_row(keys[i])).first;
    Row& row = found->second;
    row.count += counts[i];
    optimizer_->update(row.floats.data(), row.floats.data() + options_.dim,
                       gradients + i * options_.dim, options_.dim, lr_scale);
  }
}

uint64_t ReferenceTable::count_sum() const {
  uint64_t sum = 0;
  for (const auto& [key, row] : rows_) sum += row.count;
  return sum;
}

}  // namespace flux
