#include "flux/data/parquet/parquet_block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "flux/data/criteo.h"
#include "flux/data/label_check.h"
#include "flux/data/one_key.h"

namespace flux {
namespace {

// `width` numbers of each of the rows.
template <typename T>
void copy_rows(const T* from, size_t width, std::span<const uint32_t> records, T* to) {
  for (const uint32_t row : records) to = std::copy_n(from + row * width, width, to);
}

bool is_bad(float value) {
  return !std::isfinite(value);
}

// The first that is not finite, or the end.
std::vector<float>::const_iterator find_bad(const std::vector<float>& values) {
  constexpr uint32_t kExponent = 0x7f800000;  // all of its bits: infinite or no number
  uint32_t most = 0;
  for (const float value : values)
    most = std::max(most, std::bit_cast<uint32_t>(value) & kExponent);
  return most == kExponent ? std::find_if(values.begin(), values.end(), is_bad) : values.end();
}

}  // namespace

bool follow_each_other(std::span<const uint32_t> rows) {
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i] != rows[0] + i) return false;
  return !rows.empty();
}

ParquetBlock::ParquetBlock(std::shared_ptr<const ParquetReading> reading, std::string path,
                           Content content, DataBlock block, uint32_t batch_size,
                           std::vector<uint32_t> order)
    : reading_(std::move(reading)),
      path_(std::move(path)),
      content_(std::move(content)),
      block_(std::move(block)),
      batch_size_(batch_size),
      order_(std::move(order)) {}

std::span<const uint32_t> ParquetBlock::records_of(uint32_t batch) const {
  const uint64_t begin = uint64_t{batch} * batch_size_;
  FLUX_CHECK(begin < order_.size(), "batch {} of a block of {} records", batch, order_.size());
  return std::span(order_).subspan(begin, std::min<uint64_t>(batch_size_, order_.size() - begin));
}

Status ParquetBlock::fill(std::span<const uint32_t> records, Batch* out) const {
  out->slices.clear();
  if (content_.rows == nullptr)
    return fill_rows(*content_.layout, content_.columns->values(),
                     {content_.from + records[0], static_cast<uint32_t>(records.size()), path_,
                      block_.lines_before + records[0]},
                     out);
  gather_numbers(records, out);
  if (content_.rows->begin.empty())
    gather_one_key_each(records, out);
  else
    gather_keys(records, out);
  return Status::ok();
}

void ParquetBlock::gather_numbers(std::span<const uint32_t> records, Batch* out) const {
  const Batch& rows = *content_.rows;
  const size_t n = records.size(), labels = reading_->labels.size();
  out->size = static_cast<uint32_t>(n);
  out->dense = rows.dense;
  out->labels.resize(n * labels);
  out->weights.resize(rows.weights.empty() ? 0 : n);
  out->groups.resize(rows.groups.empty() ? 0 : n);
  out->dense_values.resize(n * rows.dense);
  for (size_t i = 0; i < n; ++i) {
    const size_t row = records[i];
    for (size_t l = 0; l < labels; ++l) out->labels[l * n + i] = rows.labels[l * rows.size + row];
    if (!rows.weights.empty()) out->weights[i] = rows.weights[row];
    if (!rows.groups.empty()) out->groups[i] = rows.groups[row];
  }
  copy_rows(rows.dense_values.data(), rows.dense, records, out->dense_values.data());
}

void ParquetBlock::gather_one_key_each(std::span<const uint32_t> records, Batch* out) const {
  const Batch& rows = *content_.rows;
  out->slots = rows.slots;
  out->begin.clear();
  out->values.clear();
  out->keys.resize(records.size() * rows.slots);
  copy_rows(rows.keys.data(), rows.slots, records, out->keys.data());
}

void ParquetBlock::gather_keys(std::span<const uint32_t> records, Batch* out) const {
  const Batch& rows = *content_.rows;
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

Status ParquetBlock::refuse(uint32_t record, const BadNumber& bad) const {
  if (const auto large = content_.large.find(bad.column, record, bad.index))
    return invalid("{}: record {}: {} '{}' is {}; a float holds at most 3.4e38", path_,
                   number_in_file(record), bad.what, bad.name, *large);
  return invalid("{}: record {}: {} '{}' is {}; it must be a number", path_, number_in_file(record),
                 bad.what, bad.name,
                 std::isnan(bad.value) ? "missing or not a number" : "infinite");
}

Status ParquetBlock::check_numbers(std::span<const uint32_t> records, const Batch& batch) const {
  const size_t n = records.size();
  const ColumnMap& map = content_.layout->map;
  if (const auto at = find_bad(batch.labels); at != batch.labels.end()) {
    const auto place = static_cast<size_t>(at - batch.labels.begin());
    const size_t label = place / n;
    return refuse(records[place % n],
                  {"label", reading_->labels[label], *at, map.labels[label], 0});
  }
  for (size_t i = 0; i < batch.weights.size(); ++i) {
    if (is_bad(batch.weights[i]))
      return refuse(records[i], {"column", "weight", batch.weights[i], map.weight, 0});
    if (batch.weights[i] < 0)
      return invalid("{}: record {}: weight {} is not a number of at least 0", path_,
                     number_in_file(records[i]), batch.weights[i]);
  }
  const auto at = find_bad(batch.dense_values);
  if (at == batch.dense_values.end()) return Status::ok();
  const auto place = static_cast<size_t>(at - batch.dense_values.begin());
  const size_t dense = place % batch.dense;
  return refuse(records[place / batch.dense],
                {"dense feature", reading_->dense[dense], *at, map.dense[dense], 0});
}

Status ParquetBlock::check_values(std::span<const uint32_t> records, const Batch& batch) const {
  const auto at = find_bad(batch.values);
  if (at == batch.values.end()) return Status::ok();
  auto place = static_cast<size_t>(at - batch.values.begin());
  uint32_t index = 0;
  if (!batch.begin.empty()) {  // else each slot has one key
    const auto behind = std::upper_bound(batch.begin.begin(), batch.begin.end(), place);
    index = static_cast<uint32_t>(place) - *(behind - 1);
    place = static_cast<size_t>(behind - batch.begin.begin() - 1);
  }
  const size_t slot = place % batch.slots;
  return refuse(records[place / batch.slots], {"a value of slot", reading_->slots[slot].name, *at,
                                               content_.layout->map.values[slot], index});
}

// What the job says of keys.
Status ParquetBlock::set_keys(std::span<const uint32_t> records, Batch* out) const {
  if (reading_->key_per_example) {
    out->slots = 1;
    out->begin.clear();
    out->values.clear();
    out->keys.clear();
    for (const uint32_t row : records)
      out->keys.push_back(criteo_example_key(block_.number_in_pass(row)));
  } else if (!reading_->one_key && out->begin.empty()) {
    out->begin.resize(out->keys.size() + 1);
    std::iota(out->begin.begin(), out->begin.end(), 0U);
  } else if (reading_->one_key && !out->begin.empty()) {
    if (const auto wrong = take_one_key_each(out))
      return invalid("{}: record {}: {}", path_, number_in_file(records[wrong->example]),
                     wrong->text(reading_->slots));
  }
  return Status::ok();
}

Status ParquetBlock::read_batch(uint32_t batch, Batch* out) const {
  const std::span<const uint32_t> records = records_of(batch);
  FLUX_RETURN_IF_ERROR(fill(records, out));
  FLUX_RETURN_IF_ERROR(check_numbers(records, *out));
  if (const auto wrong = find_wrong_label(*out, reading_->label_rules))
    return invalid("{}: record {}: {}", path_, number_in_file(records[wrong->example]),
                   wrong->text(reading_->labels));
  if (const auto wrong = find_wrong_weight(*out))
    return invalid("{}: record {}: {}", path_, number_in_file(records[wrong->example]),
                   wrong->text());
  if (!reading_->key_per_example) FLUX_RETURN_IF_ERROR(check_values(records, *out));
  FLUX_RETURN_IF_ERROR(set_keys(records, out));
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
