#include "flux/data/parquet/row_block.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include <immintrin.h>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"
#include "flux/data/parquet/turn_columns.h"

namespace flux {
namespace {

using parquet_plugin::kSpareValues;
using parquet_plugin::Values;

constexpr uint32_t kTile = 128;     // rows whose keys stay in the caches
constexpr size_t kSlotsAtOnce = 8;  // whose lists are read side by side

uint32_t begin_of(const Values& column, uint32_t row) {
  return column.begin == nullptr ? row : column.begin[row];
}
uint32_t count_of(const Values& column, uint32_t row) {
  return column.begin == nullptr ? 1 : column.begin[row + 1] - column.begin[row];
}

// One number in each of the rows from `from` to `to`, `missing` where there is none, every
// `stride`-th place of `out`, where row 0 has the first.
void spread(const Values& column, uint32_t from, uint32_t to, float missing, size_t stride,
            float* out) {
  if (column.begin == nullptr) {
    for (uint32_t row = from; row < to; ++row) out[row * stride] = column.numbers[row];
    return;
  }
  const auto otherwise = std::bit_cast<uint32_t>(missing);
  for (uint32_t row = from; row < to; ++row) {
    const auto number = std::bit_cast<uint32_t>(column.numbers[column.begin[row]]);  // or a spare
    const uint32_t mask = column.begin[row + 1] > column.begin[row] ? ~0U : 0U;
    out[row * stride] = std::bit_cast<float>((number & mask) | (otherwise & ~mask));
  }
}

// Whether no row has more than one value.
bool at_most_one(const Values& column, uint32_t rows) {
  uint32_t most = 0;
  if (column.begin != nullptr)
    for (uint32_t row = 0; row < rows; ++row)
      most = std::max(most, column.begin[row + 1] - column.begin[row]);
  return most <= 1;
}

// The same column from row `row` on.
Values from_row(const Values& column, uint32_t row) {
  if (column.begin != nullptr) return {column.keys, column.numbers, column.begin + row};
  return {column.keys == nullptr ? nullptr : column.keys + row,
          column.numbers == nullptr ? nullptr : column.numbers + row, nullptr};
}

class RowFiller {
 public:
  RowFiller(const RowLayout& layout, const Values* columns, const RowRange& range, Batch* out)
      : reading_(layout.reading), map_(layout.map), range_(range), rows_(range.rows), out_(out) {
    for (size_t i = 0; i < map_.wanted.size(); ++i)
      columns_.push_back(from_row(columns[i], range.from));
    for (const uint32_t slot : map_.slots) slots_.push_back(&columns_[slot]);
    out->size = rows_;
    out->slots = static_cast<uint32_t>(slots_.size());
    out->dense = static_cast<uint32_t>(map_.dense.size());
  }

  void fill_numbers();
  void fill_groups();
  Status fill_keys();
  Status fill_values();

 private:
  void fill_dense(uint32_t from, uint32_t to);
  void fill_one_key_each();
  void turn_one_key_each(uint32_t from, uint32_t to);
  Status count_keys();
  void copy_those_there();
  void copy_side_by_side();
  void copy_slot_by_slot();
  // Values of a slot as keys: themselves, or their hashes in `hashed`.
  const uint64_t* as_keys(size_t slot, const uint64_t* values, size_t count,
                          uint64_t* hashed) const {
    if (reading_.raw_keys) return values;
    for (size_t i = 0; i < count; ++i) hashed[i] = hash_pair(reading_.spaces[slot], values[i]);
    return hashed;
  }
  uint64_t key(size_t slot, uint64_t value) const {
    return reading_.raw_keys ? value : hash_pair(reading_.spaces[slot], value);
  }

  const RowReading& reading_;
  const ColumnMap& map_;
  const RowRange& range_;
  const uint32_t rows_;
  Batch* const out_;
  std::vector<Values> columns_;
  std::vector<const Values*> slots_;  // of columns_
};

void RowFiller::fill_numbers() {
  out_->labels.resize(map_.labels.size() * rows_);
  out_->weights.resize(reading_.weights ? rows_ : 0);
  out_->dense_values.resize(map_.dense.size() * rows_);
  for (size_t i = 0; i < map_.labels.size(); ++i)
    spread(columns_[map_.labels[i]], 0, rows_, std::numeric_limits<float>::quiet_NaN(), 1,
           out_->labels.data() + i * rows_);
  if (reading_.weights) spread(columns_[map_.weight], 0, rows_, 1, 1, out_->weights.data());
  for (uint32_t from = 0; from < rows_; from += kTile)
    fill_dense(from, std::min(rows_, from + kTile));
}

void RowFiller::fill_dense(uint32_t from, uint32_t to) {
  const size_t width = map_.dense.size();
  const auto column = [&](size_t i) -> const Values& { return columns_[map_.dense[i]]; };
  for (size_t i = 0; i < width;) {
    const float* four[4] = {};
    size_t whole = 0;  // columns from here on that have a number in each row
    for (; whole < 4 && i + whole < width && column(i + whole).begin == nullptr; ++whole)
      four[whole] = column(i + whole).numbers;
    float* const out = out_->dense_values.data() + i;
    if (whole == 4)
      turn_four(four, from, to, width, out);
    else
      spread(column(i), from, to, 0, width, out);
    i += whole == 4 ? 4 : 1;
  }
}

void RowFiller::fill_groups() {
  const bool any = reading_.group_column || reading_.group_slot >= 0;
  out_->groups.assign(any ? rows_ : 0, 0);
  if (!any) return;
  const Values& column = reading_.group_column ? columns_[map_.group]
                                               : *slots_[static_cast<size_t>(reading_.group_slot)];
  for (uint32_t row = 0; row < rows_; ++row) {
    if (count_of(column, row) == 0) continue;
    const uint64_t key = column.keys[begin_of(column, row)];
    out_->groups[row] = reading_.group_column ? key : mix64(key) | 1;
  }
}

Status RowFiller::fill_keys() {
  const bool one_each = std::all_of(slots_.begin(), slots_.end(),
                                    [](const Values* slot) { return slot->begin == nullptr; });
  if (one_each) {
    fill_one_key_each();
    return Status::ok();
  }
  FLUX_RETURN_IF_ERROR(count_keys());
  if (std::all_of(slots_.begin(), slots_.end(),
                  [&](const Values* slot) { return at_most_one(*slot, rows_); }))
    copy_those_there();
  else if (slots_.size() <= kSlotsAtOnce)
    copy_side_by_side();
  else
    copy_slot_by_slot();
  return Status::ok();
}

void RowFiller::fill_one_key_each() {
  out_->keys.resize(rows_ * slots_.size());
  // With values of keys each key has its place in `begin`, also where all slots have one.
  out_->begin.resize(reading_.values ? out_->keys.size() + 1 : 0);
  std::iota(out_->begin.begin(), out_->begin.end(), 0U);
  for (uint32_t from = 0; from < rows_; from += kTile)
    turn_one_key_each(from, std::min(rows_, from + kTile));
}

void RowFiller::turn_one_key_each(uint32_t from, uint32_t to) {
  const size_t width = slots_.size(), rows = to - from;
  uint64_t hashed[4][kTile];
  const uint64_t* four[4];
  for (size_t first = 0; first < width; first += 4) {
    const size_t columns = std::min<size_t>(4, width - first);
    for (size_t c = 0; c < columns; ++c)
      four[c] = as_keys(first + c, slots_[first + c]->keys + from, rows, hashed[c]);
    uint64_t* const out = out_->keys.data() + from * width + first;
    if (columns == 4) {
      turn_four(four, 0, rows, width, out);
      continue;
    }
    for (size_t c = 0; c < columns; ++c)
      for (size_t row = 0; row < rows; ++row) out[row * width + c] = four[c][row];
  }
}

// Room for all keys, and for some more that are copied and do not count.
Status RowFiller::count_keys() {
  size_t keys = 0;
  for (const Values* slot : slots_) keys += begin_of(*slot, rows_) - begin_of(*slot, 0);
  if (keys > std::numeric_limits<uint32_t>::max() - kSpareValues)
    return invalid("{}: records {} to {} have {} keys, more than 2^32; take a smaller data.batch",
                   range_.path, range_.number + 1, range_.number + rows_, keys);
  out_->keys.resize(keys + kSpareValues);
  out_->begin.resize(rows_ * slots_.size() + 1);
  out_->begin.back() = static_cast<uint32_t>(keys);
  return Status::ok();
}

// Keys that are there and such that are not become rows, of which then the latter are left out:
// that way nothing is guessed at.
void RowFiller::copy_those_there() {
  const size_t width = slots_.size();
  std::vector<uint64_t> some(kTile * width);
  uint64_t hashed[kTile + 1];
  uint64_t* const keys = out_->keys.data();
  uint32_t at = 0;
  for (uint32_t from = 0; from < rows_; from += kTile) {
    const uint32_t rows = std::min(rows_ - from, kTile);
    uint32_t* const begin = out_->begin.data() + from * width;  // how many, at first
    for (size_t s = 0; s < width; ++s) {
      const Values slot = from_row(*slots_[s], from);
      const uint32_t first = begin_of(slot, 0);
      const uint64_t* const of =
          as_keys(s, slot.keys + first, begin_of(slot, rows) - first + 1, hashed);
      for (uint32_t row = 0; row < rows; ++row) {
        some[row * width + s] = of[begin_of(slot, row) - first];
        begin[row * width + s] = count_of(slot, row);
      }
    }
    for (size_t i = 0; i < rows * width; ++i) {
      keys[at] = some[i];
      at += std::exchange(begin[i], at);
    }
  }
  out_->keys.resize(at);
}

// Row after row, four keys at a time: what is copied too much is written over by what follows.
void RowFiller::copy_side_by_side() {
  uint64_t* to = out_->keys.data();
  uint32_t* begin = out_->begin.data();
  for (uint32_t row = 0; row < rows_; ++row)
    for (size_t s = 0; s < slots_.size(); ++s) {
      const uint64_t* from = slots_[s]->keys + begin_of(*slots_[s], row);
      const uint32_t count = count_of(*slots_[s], row);
      *begin++ = static_cast<uint32_t>(to - out_->keys.data());
      if (reading_.raw_keys) {
        uint32_t i = 0;
        do {
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
          i += 4;
        } while (i < count);
      } else {
        for (uint32_t i = 0; i < count; ++i) to[i] = hash_pair(reading_.spaces[s], from[i]);
      }
      to += count;
    }
  out_->keys.resize(out_->begin.back());
}

// Some rows of a slot after the other: so many columns side by side would not stay in the cache.
void RowFiller::copy_slot_by_slot() {
  const size_t width = slots_.size();
  uint32_t* begin = out_->begin.data();
  uint32_t keys = 0;
  for (uint32_t row = 0; row < rows_; ++row)
    for (const Values* slot : slots_) {
      *begin++ = keys;
      keys += count_of(*slot, row);
    }
  out_->keys.resize(keys);
  for (uint32_t from = 0; from < rows_; from += kTile)
    for (size_t s = 0; s < width; ++s)
      for (uint32_t row = from; row < std::min(rows_, from + kTile); ++row) {
        const uint64_t* of = slots_[s]->keys + begin_of(*slots_[s], row);
        uint64_t* to = out_->keys.data() + out_->begin[row * width + s];
        for (uint32_t i = 0; i < count_of(*slots_[s], row); ++i) to[i] = key(s, of[i]);
      }
}

Status RowFiller::fill_values() {
  out_->values.resize(reading_.values ? out_->keys.size() : 0);
  if (!reading_.values) return Status::ok();
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Values* values = map_.values[s] == ColumnMap::kNone ? nullptr : &columns_[map_.values[s]];
    for (uint32_t row = 0; row < rows_; ++row) {
      float* to = out_->values.data() + out_->begin[row * slots_.size() + s];
      const uint32_t count = count_of(*slots_[s], row);
      const bool fits = values != nullptr && count_of(*values, row) == count;
      if (values == nullptr ||
          (!fits && std::binary_search(range_.bad.begin(), range_.bad.end(), row))) {
        std::fill_n(to, count, 1.0F);
        continue;
      }
      if (!fits)
        return invalid("{}: record {}: slot '{}' has {} keys, but {} values of them", range_.path,
                       range_.number + row + 1, reading_.names[s], count, count_of(*values, row));
      std::copy_n(values->numbers + begin_of(*values, row), count, to);
    }
  }
  return Status::ok();
}

}  // namespace

RowReading::RowReading(const DataOptions& options)
    : raw_keys(options.raw_keys), weights(options.weights), group_column(options.group == "sid") {
  for (const SlotOptions& slot : options.slots) {
    names.push_back(slot.name);
    spaces.push_back(key_space(slot.name, slot.keys));
    values = values || slot.values;
    if (slot.name == options.group) group_slot = static_cast<int>(spaces.size()) - 1;
  }
}

Status fill_rows(const RowLayout& layout, const Values* columns, const RowRange& range,
                 Batch* out) {
  RowFiller filler(layout, columns, range, out);
  filler.fill_numbers();
  filler.fill_groups();
  FLUX_RETURN_IF_ERROR(filler.fill_keys());
  return filler.fill_values();
}

}  // namespace flux
