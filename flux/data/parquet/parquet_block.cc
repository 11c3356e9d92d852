#include "flux/data/parquet/parquet_block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "flux/data/criteo.h"
#include "flux/data/one_key.h"

namespace flux {
namespace {

bool follow_each_other(std::span<const uint32_t> records) {
  for (size_t i = 1; i < records.size(); ++i)
    if (records[i] != records[0] + i) return false;
  return !records.empty();
}

// `width` numbers of each of the rows.
template <typename T>
void copy_rows(const T* from, size_t width, std::span<const uint32_t> records, T* to) {
  if (follow_each_other(records)) {
    std::copy_n(from + records[0] * width, records.size() * width, to);
    return;
  }
  for (const uint32_t row : records) to = std::copy_n(from + row * width, width, to);
}

}  // namespace

ParquetBlock::ParquetBlock(std::shared_ptr<const ParquetReading> reading, std::string path,
                           std::shared_ptr<const Batch> rows, DataBlock block, uint32_t batch_size,
                           std::vector<uint32_t> order)
    : reading_(std::move(reading)),
      path_(std::move(path)),
      rows_(std::move(rows)),
      block_(std::move(block)),
      batch_size_(batch_size),
      order_(std::move(order)) {}

std::span<const uint32_t> ParquetBlock::records_of(uint32_t batch) const {
  const uint64_t begin = uint64_t{batch} * batch_size_;
  FLUX_CHECK(begin < order_.size(), "batch {} of a block of {} records", batch, order_.size());
  return std::span(order_).subspan(begin, std::min<uint64_t>(batch_size_, order_.size() - begin));
}

void ParquetBlock::gather_numbers(std::span<const uint32_t> records, Batch* out) const {
  const Batch& rows = *rows_;
  const size_t n = records.size(), labels = reading_->labels.size();
  out->size = static_cast<uint32_t>(n);
  out->dense = rows.dense;
  out->labels.resize(n * labels);
  out->weights.resize(rows.weights.empty() ? 0 : n);
  out->groups.resize(rows.groups.empty() ? 0 : n);
  out->dense_values.resize(n * rows.dense);
  out->slices.clear();
  for (size_t i = 0; i < n; ++i) {
    const size_t row = records[i];
    for (size_t l = 0; l < labels; ++l) out->labels[l * n + i] = rows.labels[l * rows.size + row];
    if (!rows.weights.empty()) out->weights[i] = rows.weights[row];
    if (!rows.groups.empty()) out->groups[i] = rows.groups[row];
  }
  copy_rows(rows.dense_values.data(), rows.dense, records, out->dense_values.data());
}

void ParquetBlock::gather_one_key_each(std::span<const uint32_t> records, Batch* out) const {
  const size_t slots = rows_->slots;
  out->slots = rows_->slots;
  out->values.clear();
  out->keys.resize(records.size() * slots);
  copy_rows(rows_->keys.data(), slots, records, out->keys.data());
  out->begin.resize(reading_->one_key ? 0 : out->keys.size() + 1);
  std::iota(out->begin.begin(), out->begin.end(), 0);
}

void ParquetBlock::gather_keys(std::span<const uint32_t> records, Batch* out) const {
  const Batch& rows = *rows_;
  const size_t slots = rows.slots;
  out->slots = rows.slots;
  out->begin.resize(records.size() * slots + 1);
  size_t keys = 0;
  for (const uint32_t row : records)
    keys += rows.begin[(row + size_t{1}) * slots] - rows.begin[row * slots];
  out->keys.resize(keys);
  out->values.resize(rows.values.empty() ? 0 : keys);
  uint32_t at = 0;
  uint32_t* begin = out->begin.data();
  for (const uint32_t row : records) {
    const uint32_t* from = rows.begin.data() + row * slots;
    const uint32_t first = from[0], count = from[slots] - first;
    for (size_t s = 0; s < slots; ++s) *begin++ = at + (from[s] - first);
    std::copy_n(rows.keys.data() + first, count, out->keys.data() + at);
    if (!rows.values.empty())
      std::copy_n(rows.values.data() + first, count, out->values.data() + at);
    at += count;
  }
  *begin = at;
}

Status ParquetBlock::refuse(uint32_t record, const char* what, const std::string& name,
                            float value) const {
  return invalid("{}: record {}: {} '{}' is {}; it must be a number", path_, number_in_file(record),
                 what, name,
                 std::isnan(value) ? "missing or not a number"
                                   : "infinite or too large for a float (at most 3.4e38)");
}

Status ParquetBlock::check_numbers(std::span<const uint32_t> records, const Batch& batch) const {
  const auto bad = [](float value) { return !std::isfinite(value); };
  const size_t n = records.size();
  if (const auto at = std::find_if(batch.labels.begin(), batch.labels.end(), bad);
      at != batch.labels.end()) {
    const auto place = static_cast<size_t>(at - batch.labels.begin());
    return refuse(records[place % n], "label", reading_->labels[place / n], *at);
  }
  for (size_t i = 0; i < batch.weights.size(); ++i)
    if (bad(batch.weights[i]) || batch.weights[i] < 0)
      return invalid("{}: record {}: weight {} is not a number of at least 0", path_,
                     number_in_file(records[i]), batch.weights[i]);
  const auto at = std::find_if(batch.dense_values.begin(), batch.dense_values.end(), bad);
  if (at == batch.dense_values.end()) return Status::ok();
  const auto place = static_cast<size_t>(at - batch.dense_values.begin());
  return refuse(records[place / batch.dense], "dense feature", reading_->dense[place % batch.dense],
                *at);
}

Status ParquetBlock::check_values(std::span<const uint32_t> records, const Batch& batch) const {
  const auto bad = [](float value) { return !std::isfinite(value); };
  const auto at = std::find_if(batch.values.begin(), batch.values.end(), bad);
  if (at == batch.values.end()) return Status::ok();
  const auto key = static_cast<uint32_t>(at - batch.values.begin());
  const auto place = static_cast<size_t>(
      std::upper_bound(batch.begin.begin(), batch.begin.end(), key) - batch.begin.begin() - 1);
  return refuse(records[place / batch.slots], "a value of slot",
                reading_->slots[place % batch.slots].name, *at);
}

Status ParquetBlock::read_batch(uint32_t batch, Batch* out) const {
  const std::span<const uint32_t> records = records_of(batch);
  gather_numbers(records, out);
  FLUX_RETURN_IF_ERROR(check_numbers(records, *out));
  if (reading_->key_per_example) {
    out->slots = 1;
    out->begin.clear();
    out->values.clear();
    out->keys.clear();
    for (const uint32_t row : records)
      out->keys.push_back(criteo_example_key(block_.number_in_pass(row)));
  } else if (rows_->begin.empty()) {
    gather_one_key_each(records, out);
  } else {
    gather_keys(records, out);
    FLUX_RETURN_IF_ERROR(check_values(records, *out));
  }
  if (reading_->one_key && !out->begin.empty())
    if (const auto wrong = take_one_key_each(out))
      return invalid("{}: record {}: {}", path_, number_in_file(records[wrong->example]),
                     wrong->text(reading_->slots));
  reading_->features.apply(out);
  return Status::ok();
}

std::string ParquetBlock::describe(uint32_t batch) const {
  if (uint64_t{batch} * batch_size_ >= order_.size()) return "";
  const std::span<const uint32_t> records = records_of(batch);
  const auto [low, high] = std::minmax_element(records.begin(), records.end());
  const uint64_t first = number_in_file(*low), last = number_in_file(*high);
  return last - first + 1 == records.size()
             ? fmt::format("{}: records {} to {}", path_, first, last)
             : fmt::format("{}: {} of records {} to {}", path_, records.size(), first, last);
}

std::string ParquetBlock::describe_example(uint32_t batch, uint32_t example) const {
  const size_t at = size_t{batch} * batch_size_ + example;
  if (example >= batch_size_ || at >= order_.size()) return "";
  return fmt::format("{}: record {}", path_, number_in_file(order_[at]));
}

}  // namespace flux
