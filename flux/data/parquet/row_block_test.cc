// RowFiller, some rows at a time, against lists of lists that are laid out in the plainest way.
#include "flux/data/parquet/row_block.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"

namespace flux {
namespace {

using parquet_plugin::Values;

// A column: the keys or numbers of each row.
template <typename T>
using Lists = std::vector<std::vector<T>>;

constexpr size_t kSlots = 6;   // four of which are turned at once
constexpr size_t kValued = 1;  // the slot whose keys may have values

struct Columns {
  Lists<float> label, dense, weight, values;
  Lists<uint64_t> sid, slots[kSlots];
};

std::string slot_name(size_t slot) {
  return std::string(1, static_cast<char>('a' + slot));
}

// The rows `from` to `to` of a column, as a cursor has them; null `ends` where each has one.
template <typename T>
struct Flat {
  Flat(const Lists<T>& lists, uint32_t from, uint32_t to) {
    for (uint32_t row = from; row < to; ++row) {
      all.insert(all.end(), lists[row].begin(), lists[row].end());
      ends.push_back(static_cast<uint32_t>(all.size()));
      one_each = one_each && lists[row].size() == 1;
    }
  }
  Values values() const {
    Values out{nullptr, nullptr, one_each ? nullptr : ends.data()};
    if constexpr (std::is_same_v<T, float>)
      out.numbers = all.data();
    else
      out.keys = all.data();
    return out;
  }
  std::vector<T> all;
  std::vector<uint32_t> ends;
  bool one_each = true;
};

class RowFillerTest : public ::testing::Test {
 protected:
  RowFillerTest() {
    options_.labels = {"label"};
    options_.dense = {"dense"};
    options_.slots.resize(kSlots);
    map_.values.assign(kSlots, ColumnMap::kNone);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      options_.slots[slot].name = slot_name(slot);
      map_.slots.push_back(5 + slot);
    }
    options_.weights = true;
    options_.group = "sid";
    map_.labels = {0};
    map_.dense = {1};
    map_.weight = 2;
    map_.group = 3;
  }

  // Fills `out` from all rows, `step` at a time.
  Status fill(const Columns& c, uint32_t step, Batch* out) {
    const RowReading reading(options_);
    const auto rows = static_cast<uint32_t>(c.label.size());
    RowFiller filler(reading, map_, rows, out);
    for (uint32_t from = 0; from < rows; from += step) {
      const uint32_t to = std::min(rows, from + step);
      const Flat label(c.label, from, to), dense(c.dense, from, to), weight(c.weight, from, to),
          values(c.values, from, to);
      const Flat sid(c.sid, from, to);
      std::vector<Flat<uint64_t>> slots;
      for (const auto& lists : c.slots) slots.emplace_back(lists, from, to);
      std::vector<Values> all = {label.values(), dense.values(), weight.values(), sid.values(),
                                 values.values()};
      for (const auto& slot : slots) all.push_back(slot.values());
      FLUX_RETURN_IF_ERROR(filler.add(all.data(), "f.parquet", from, to - from));
    }
    filler.finish();
    return Status::ok();
  }

  void expect_equal(const Columns& c, const Batch& got) const;

  DataOptions options_;
  ColumnMap map_;
};

// As the contract says it, row by row.
void RowFillerTest::expect_equal(const Columns& c, const Batch& got) const {
  const size_t rows = c.label.size();
  Batch want;
  bool one_each = true;
  want.begin = {0};
  for (size_t row = 0; row < rows; ++row) {
    want.labels.push_back(c.label[row].empty() ? NAN : c.label[row][0]);
    want.dense_values.push_back(c.dense[row].empty() ? 0 : c.dense[row][0]);
    want.weights.push_back(c.weight[row].empty() ? 1 : c.weight[row][0]);
    want.groups.push_back(c.sid[row].empty() ? 0 : c.sid[row][0]);
    for (size_t slot = 0; slot < kSlots; ++slot) {
      const std::vector<uint64_t>& keys = c.slots[slot][row];
      for (const uint64_t key : keys)
        want.keys.push_back(options_.raw_keys ? key
                                              : hash_pair(key_space(slot_name(slot), ""), key));
      want.begin.push_back(static_cast<uint32_t>(want.keys.size()));
      one_each = one_each && keys.size() == 1;
      if (!options_.slots[kValued].values) continue;
      const std::vector<float> ones(keys.size(), 1.0F);
      const std::vector<float>& values = slot == kValued ? c.values[row] : ones;
      want.values.insert(want.values.end(), values.begin(), values.end());
    }
  }
  if (one_each && want.values.empty()) want.begin.clear();
  EXPECT_EQ(got.size, rows);
  EXPECT_EQ(got.slots, kSlots);
  EXPECT_EQ(got.keys, want.keys);
  EXPECT_EQ(got.begin, want.begin);
  EXPECT_EQ(got.values, want.values);
  EXPECT_EQ(got.weights, want.weights);
  EXPECT_EQ(got.groups, want.groups);
  EXPECT_EQ(got.dense_values, want.dense_values);
  ASSERT_EQ(got.labels.size(), rows);
  for (size_t row = 0; row < rows; ++row)
    EXPECT_TRUE(got.labels[row] == want.labels[row] ||
                (std::isnan(got.labels[row]) && std::isnan(want.labels[row])));
}

// `gaps`: from this row on, columns without a value and lists of several.
Columns random_columns(uint32_t rows, uint32_t gaps, std::mt19937* random) {
  Columns c;
  const auto numbers = [&](size_t count) {
    std::vector<float> out(count);
    for (float& one : out) one = static_cast<float>((*random)() % 100);
    return out;
  };
  const auto keys = [&](size_t count) {
    std::vector<uint64_t> out(count);
    for (uint64_t& one : out) one = (*random)();
    return out;
  };
  for (uint32_t row = 0; row < rows; ++row) {
    const auto count = [&](uint32_t most) { return row < gaps ? 1 : (*random)() % (most + 1); };
    for (auto* column : {&c.label, &c.dense, &c.weight}) column->push_back(numbers(count(1)));
    c.sid.push_back(keys(count(1)));
    for (auto& slot : c.slots) slot.push_back(keys(count(3)));
    c.values.push_back(numbers(c.slots[kValued].back().size()));
  }
  return c;
}

TEST_F(RowFillerTest, EqualsThePlainLayout) {
  std::mt19937 random(7);
  Batch out;  // used again and again, as a pool does
  for (int round = 0; round < 200; ++round) {
    const uint32_t rows = 1 + random() % 300;
    const uint32_t gaps = round % 3 == 0 ? rows : random() % rows;
    options_.raw_keys = round % 2 == 0;
    options_.slots[kValued].values = round % 5 == 0;
    map_.values[kValued] = options_.slots[kValued].values ? 4 : ColumnMap::kNone;
    const Columns columns = random_columns(rows, gaps, &random);
    const Status filled = fill(columns, 1 + random() % 150, &out);
    ASSERT_TRUE(filled.is_ok()) << filled.message();
    expect_equal(columns, out);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(RowFillerTest, ValuesThatAreNotAsManyAsKeysAreNamed) {
  options_.slots[kValued].values = true;
  map_.values[kValued] = 4;
  std::mt19937 random(8);
  Columns columns = random_columns(10, 10, &random);
  columns.values[7].push_back(1);
  Batch out;
  const Status filled = fill(columns, 3, &out);
  EXPECT_EQ(filled.code(), Code::kInvalid);
  EXPECT_EQ(filled.message(), "f.parquet: record 8: 1 keys of a slot, but 2 values of them");
}

}  // namespace
}  // namespace flux
