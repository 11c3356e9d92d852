#include "flux/data/parquet/row_block.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"

namespace flux {
namespace {

using parquet_plugin::Values;

constexpr uint32_t kTile = 64;  // rows whose keys stay in the first-level cache

// One number in each row, `missing` where there is none, every `stride`-th place of `out`.
void spread(const Values& column, uint32_t rows, float missing, size_t stride, float* out) {
  if (column.ends == nullptr) {
    for (uint32_t row = 0; row < rows; ++row) out[row * stride] = column.numbers[row];
    return;
  }
  uint32_t begin = 0;
  for (uint32_t row = 0; row < rows; begin = column.ends[row++])
    out[row * stride] = column.ends[row] > begin ? column.numbers[begin] : missing;
}

uint32_t begin_of(const Values& column, uint32_t row) {
  if (column.ends == nullptr) return row;
  return row == 0 ? 0 : column.ends[row - 1];
}
uint32_t end_of(const Values& column, uint32_t row) {
  return column.ends == nullptr ? row + 1 : column.ends[row];
}

// Where the keys of each slot of each row begin.
void place_keys(const std::vector<const Values*>& slots, uint32_t rows,
                std::vector<uint32_t>* out) {
  out->resize(size_t{rows} * slots.size() + 1);
  uint32_t at = 0;
  uint32_t* to = out->data();
  for (uint32_t row = 0; row < rows; ++row)
    for (const Values* slot : slots) {
      *to++ = at;
      at += end_of(*slot, row) - begin_of(*slot, row);
    }
  *to = at;
}

// Every slot has one key in each row.
void copy_one_key_each(const std::vector<const Values*>& slots, const RowReading& reading,
                       uint32_t rows, Batch* out) {
  const size_t width = slots.size();
  out->begin.resize(rows * width + 1);
  std::iota(out->begin.begin(), out->begin.end(), 0);
  out->keys.resize(rows * width);
  for (uint32_t from = 0; from < rows; from += kTile) {
    const uint32_t to = std::min(rows, from + kTile);
    for (size_t s = 0; s < width; ++s) {
      const uint64_t* keys = slots[s]->keys;
      uint64_t* at = out->keys.data() + s;
      const uint64_t space = reading.spaces[s];
      if (reading.raw_keys)
        for (uint32_t row = from; row < to; ++row) at[row * width] = keys[row];
      else
        for (uint32_t row = from; row < to; ++row) at[row * width] = hash_pair(space, keys[row]);
    }
  }
}

void copy_keys(const Values& slot, uint64_t space, bool raw, uint32_t from, uint32_t to,
               size_t slots, const uint32_t* begin, uint64_t* out) {
  for (uint32_t row = from; row < to; ++row) {
    uint64_t* at = out + begin[row * slots];
    for (uint32_t i = begin_of(slot, row); i < end_of(slot, row); ++i)
      *at++ = raw ? slot.keys[i] : hash_pair(space, slot.keys[i]);
  }
}

void copy_all_keys(const std::vector<const Values*>& slots, const RowReading& reading,
                   uint32_t rows, Batch* out) {
  place_keys(slots, rows, &out->begin);
  out->keys.resize(out->begin.back());
  for (uint32_t from = 0; from < rows; from += kTile)
    for (size_t s = 0; s < slots.size(); ++s)
      copy_keys(*slots[s], reading.spaces[s], reading.raw_keys, from, std::min(rows, from + kTile),
                slots.size(), out->begin.data() + s, out->keys.data());
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

void fill_groups(const RowReading& reading, const ColumnMap& map, const Values* columns,
                 uint32_t rows, Batch* out) {
  const bool any = reading.group_column || reading.group_slot >= 0;
  out->groups.assign(any ? rows : 0, 0);
  if (!any) return;
  const Values& column = reading.group_column
                             ? columns[map.group]
                             : columns[map.slots[static_cast<size_t>(reading.group_slot)]];
  for (uint32_t row = 0; row < rows; ++row) {
    if (end_of(column, row) == begin_of(column, row)) continue;
    const uint64_t key = column.keys[begin_of(column, row)];
    out->groups[row] = reading.group_column ? key : mix64(key) | 1;
  }
}

void fill_numbers(const RowReading& reading, const ColumnMap& map, const Values* columns,
                  uint32_t rows, Batch* out) {
  out->size = rows;
  out->slots = static_cast<uint32_t>(map.slots.size());
  out->dense = static_cast<uint32_t>(map.dense.size());
  out->labels.resize(map.labels.size() * rows);
  for (size_t i = 0; i < map.labels.size(); ++i)
    spread(columns[map.labels[i]], rows, std::numeric_limits<float>::quiet_NaN(), 1,
           out->labels.data() + i * rows);
  out->weights.resize(reading.weights ? rows : 0);
  if (reading.weights) spread(columns[map.weight], rows, 1, 1, out->weights.data());
  out->dense_values.resize(map.dense.size() * rows);
  for (size_t i = 0; i < map.dense.size(); ++i)
    spread(columns[map.dense[i]], rows, 0, map.dense.size(), out->dense_values.data() + i);
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

Status rows_to_batch(const RowReading& reading, const ColumnMap& map, const Values* columns,
                     const std::string& path, uint64_t first, uint32_t rows, Batch* out) {
  fill_numbers(reading, map, columns, rows, out);
  fill_groups(reading, map, columns, rows, out);
  std::vector<const Values*> slots;
  for (const uint32_t slot : map.slots) slots.push_back(columns + slot);
  if (std::all_of(slots.begin(), slots.end(), [](auto* slot) { return slot->ends == nullptr; }))
    copy_one_key_each(slots, reading, rows, out);
  else
    copy_all_keys(slots, reading, rows, out);
  out->values.resize(reading.values ? out->keys.size() : 0);
  if (!reading.values) return Status::ok();
  for (size_t s = 0; s < slots.size(); ++s) {
    const Values* values = map.values[s] == ColumnMap::kNone ? nullptr : columns + map.values[s];
    FLUX_RETURN_IF_ERROR(copy_values(*slots[s], values, path, first, rows, slots.size(),
                                     out->begin.data() + s, out->values.data()));
  }
  return Status::ok();
}

}  // namespace flux
