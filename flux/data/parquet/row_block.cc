#include "flux/data/parquet/row_block.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <immintrin.h>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"

namespace flux {
namespace {

using parquet_plugin::Values;

constexpr uint32_t kTile = 64;  // rows whose keys stay in the first-level cache

// One number in each of the rows from `from` to `to`, `missing` where there is none, every
// `stride`-th place of `out`, where row 0 has the first.
void spread(const Values& column, uint32_t from, uint32_t to, float missing, size_t stride,
            float* out) {
  if (column.ends == nullptr) {
    for (uint32_t row = from; row < to; ++row) out[row * stride] = column.numbers[row];
    return;
  }
  uint32_t begin = from == 0 ? 0 : column.ends[from - 1];
  for (uint32_t row = from; row < to; begin = column.ends[row++])
    out[row * stride] = column.ends[row] > begin ? column.numbers[begin] : missing;
}

uint32_t begin_of(const Values& column, uint32_t row) {
  if (column.ends == nullptr) return row;
  return row == 0 ? 0 : column.ends[row - 1];
}
uint32_t end_of(const Values& column, uint32_t row) {
  return column.ends == nullptr ? row + 1 : column.ends[row];
}

// Room for `size` in all; never less than there is, which would be filled with zeros again.
template <typename T>
void make_room(size_t size, std::vector<T>* out) {
  if (out->size() < size) out->resize(size);
}

// The keys of four slots, one each, in the rows from `from` to `to`: columns become rows of
// `width`.
void turn_four(const Values* const* slots, uint32_t from, uint32_t to, size_t width,
               uint64_t* out) {
  uint32_t row = from;
  for (; row + 4 <= to; row += 4) {
    __m256i column[4];
    for (size_t s = 0; s < 4; ++s)
      column[s] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(slots[s]->keys + row));
    const __m256i even01 = _mm256_unpacklo_epi64(column[0], column[1]);
    const __m256i odd01 = _mm256_unpackhi_epi64(column[0], column[1]);
    const __m256i even23 = _mm256_unpacklo_epi64(column[2], column[3]);
    const __m256i odd23 = _mm256_unpackhi_epi64(column[2], column[3]);
    const __m256i turned[4] = {_mm256_permute2x128_si256(even01, even23, 0x20),
                               _mm256_permute2x128_si256(odd01, odd23, 0x20),
                               _mm256_permute2x128_si256(even01, even23, 0x31),
                               _mm256_permute2x128_si256(odd01, odd23, 0x31)};
    for (size_t r = 0; r < 4; ++r)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + (row + r) * width), turned[r]);
  }
  for (; row < to; ++row)
    for (size_t s = 0; s < 4; ++s) out[row * width + s] = slots[s]->keys[row];
}

void copy_keys(const Values& slot, uint64_t space, bool raw, uint32_t from, uint32_t to,
               size_t slots, const uint32_t* begin, uint64_t* out) {
  for (uint32_t row = from; row < to; ++row) {
    uint64_t* at = out + begin[row * slots];
    for (uint32_t i = begin_of(slot, row); i < end_of(slot, row); ++i)
      *at++ = raw ? slot.keys[i] : hash_pair(space, slot.keys[i]);
  }
}

Status copy_values(const Values& keys, const Values* values, const std::string& path,
                   uint64_t first, uint32_t rows, size_t slots, const uint32_t* begin, float* out) {
  for (uint32_t row = 0; row < rows; ++row) {
    float* at = out + begin[row * slots];
    const uint32_t count = end_of(keys, row) - begin_of(keys, row);
    if (values == nullptr) {
      std::fill_n(at, count, 1.0F);
      continue;
    }
    const uint32_t from = begin_of(*values, row), given = end_of(*values, row) - from;
    if (given != count)
      return invalid("{}: record {}: {} keys of a slot, but {} values of them", path,
                     first + row + 1, count, given);
    std::copy_n(values->numbers + from, count, at);
  }
  return Status::ok();
}

}  // namespace

RowReading::RowReading(const DataOptions& options)
    : raw_keys(options.raw_keys), weights(options.weights), group_column(options.group == "sid") {
  for (const SlotOptions& slot : options.slots) {
    spaces.push_back(key_space(slot.name, slot.keys));
    values = values || slot.values;
    if (slot.name == options.group) group_slot = static_cast<int>(spaces.size()) - 1;
  }
}

RowFiller::RowFiller(const RowReading& reading, const ColumnMap& map, uint32_t rows, Batch* out)
    : reading_(reading), map_(map), out_(out), slots_(map.slots.size()) {
  out->size = rows;
  out->slots = static_cast<uint32_t>(map.slots.size());
  out->dense = static_cast<uint32_t>(map.dense.size());
  out->labels.resize(map.labels.size() * rows);
  out->weights.resize(reading.weights ? rows : 0);
  out->dense_values.resize(map.dense.size() * rows);
  out->groups.assign(reading.group_column || reading.group_slot >= 0 ? rows : 0, 0);
  make_room(size_t{rows} * out->slots, &out->keys);
  // With values of keys each key has its place in `begin`, also where all slots have one.
  if (reading.values) begin_counting();
}

void RowFiller::add_numbers(const Values* columns, uint32_t rows) {
  for (size_t i = 0; i < map_.labels.size(); ++i)
    spread(columns[map_.labels[i]], 0, rows, std::numeric_limits<float>::quiet_NaN(), 1,
           out_->labels.data() + i * out_->size + at_);
  if (reading_.weights) spread(columns[map_.weight], 0, rows, 1, 1, out_->weights.data() + at_);
  const size_t dense = map_.dense.size();
  for (uint32_t from = 0; from < rows; from += kTile)
    for (size_t i = 0; i < dense; ++i)
      spread(columns[map_.dense[i]], from, std::min(rows, from + kTile), 0, dense,
             out_->dense_values.data() + at_ * dense + i);
}

void RowFiller::add_groups(const Values* columns, uint32_t rows) {
  if (out_->groups.empty()) return;
  const Values& column = reading_.group_column
                             ? columns[map_.group]
                             : columns[map_.slots[static_cast<size_t>(reading_.group_slot)]];
  for (uint32_t row = 0; row < rows; ++row) {
    if (end_of(column, row) == begin_of(column, row)) continue;
    const uint64_t key = column.keys[begin_of(column, row)];
    out_->groups[at_ + row] = reading_.group_column ? key : mix64(key) | 1;
  }
}

// Every slot has one key in each of the rows.
void RowFiller::add_one_key_each(uint32_t rows) {
  const size_t width = slots_.size();
  make_room(keys_ + rows * width, &out_->keys);
  uint64_t* const first = out_->keys.data() + keys_;
  for (uint32_t from = 0; from < rows; from += kTile) {
    const uint32_t to = std::min(rows, from + kTile);
    size_t s = 0;
    if (reading_.raw_keys)
      for (; s + 4 <= width; s += 4) turn_four(slots_.data() + s, from, to, width, first + s);
    for (; s < width; ++s) {
      const uint64_t* keys = slots_[s]->keys;
      uint64_t* at = first + s;
      const uint64_t space = reading_.spaces[s];
      if (reading_.raw_keys)
        for (uint32_t row = from; row < to; ++row) at[row * width] = keys[row];
      else
        for (uint32_t row = from; row < to; ++row) at[row * width] = hash_pair(space, keys[row]);
    }
  }
  if (counted_) {
    const auto begin = out_->begin.begin() + static_cast<ptrdiff_t>(at_ * width);
    std::iota(begin, begin + static_cast<ptrdiff_t>(rows * width), keys_);
  }
  keys_ += static_cast<uint32_t>(rows * width);
}

void RowFiller::add_any_keys(uint32_t rows) {
  begin_counting();
  const size_t width = slots_.size();
  uint32_t* const begin = out_->begin.data() + at_ * width;
  uint32_t* to = begin;
  for (uint32_t row = 0; row < rows; ++row)
    for (const Values* slot : slots_) {
      *to++ = keys_;
      keys_ += end_of(*slot, row) - begin_of(*slot, row);
    }
  make_room(keys_, &out_->keys);
  for (uint32_t from = 0; from < rows; from += kTile)
    for (size_t s = 0; s < width; ++s)
      copy_keys(*slots_[s], reading_.spaces[s], reading_.raw_keys, from,
                std::min(rows, from + kTile), width, begin + s, out_->keys.data());
}

// From here on `begin` is filled; the rows so far have one key in each slot.
void RowFiller::begin_counting() {
  if (counted_) return;
  counted_ = true;
  out_->begin.resize(size_t{out_->size} * slots_.size() + 1);
  std::iota(out_->begin.begin(), out_->begin.begin() + keys_, 0);
}

Status RowFiller::add_values(const Values* columns, const std::string& path, uint64_t first,
                             uint32_t rows) {
  make_room(keys_, &out_->values);
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Values* values = map_.values[s] == ColumnMap::kNone ? nullptr : columns + map_.values[s];
    FLUX_RETURN_IF_ERROR(copy_values(*slots_[s], values, path, first, rows, slots_.size(),
                                     out_->begin.data() + at_ * slots_.size() + s,
                                     out_->values.data()));
  }
  return Status::ok();
}

Status RowFiller::add(const Values* columns, const std::string& path, uint64_t first,
                      uint32_t rows) {
  add_numbers(columns, rows);
  add_groups(columns, rows);
  for (size_t s = 0; s < slots_.size(); ++s) slots_[s] = columns + map_.slots[s];
  if (std::all_of(slots_.begin(), slots_.end(), [](auto* slot) { return slot->ends == nullptr; }))
    add_one_key_each(rows);
  else
    add_any_keys(rows);
  if (reading_.values) FLUX_RETURN_IF_ERROR(add_values(columns, path, first, rows));
  at_ += rows;
  return Status::ok();
}

void RowFiller::finish() {
  out_->keys.resize(keys_);
  out_->values.resize(reading_.values ? keys_ : 0);
  if (counted_)
    out_->begin.back() = keys_;
  else
    out_->begin.clear();
}

}  // namespace flux
