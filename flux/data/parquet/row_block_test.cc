// fill_rows, of any part of some columns, against lists of lists that are laid out in the plainest
// way.
#include "flux/data/parquet/row_block.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/data/features/feature.h"

namespace flux {
namespace {

using parquet_plugin::As;
using parquet_plugin::Values;

// A column: the keys or numbers of each row.
template <typename T>
using Lists = std::vector<std::vector<T>>;

constexpr size_t kDense = 7;   // four of which are turned at once
constexpr size_t kValued = 1;  // the slot whose keys may have values

struct Columns {
  Lists<float> label, weight, values;
  Lists<uint64_t> sid;
  std::vector<Lists<float>> dense;
  std::vector<Lists<uint64_t>> slots;
};

std::string slot_name(size_t slot) {
  return std::string(1, static_cast<char>('a' + slot));
}

// A column as a cursor has it; null `begin` where each row has one value.
template <typename T>
struct Flat {
  explicit Flat(const Lists<T>& lists) {
    for (const std::vector<T>& row : lists) {
      all.insert(all.end(), row.begin(), row.end());
      begin.push_back(static_cast<uint32_t>(all.size()));
      one_each = one_each && row.size() == 1;
    }
    all.resize(all.size() + parquet_plugin::kSpareValues, 77);  // may be read, and must not count
  }
  Values values() const {
    Values out{nullptr, nullptr, one_each ? nullptr : begin.data()};
    if constexpr (std::is_same_v<T, float>)
      out.numbers = all.data();
    else
      out.keys = all.data();
    return out;
  }
  std::vector<T> all;
  std::vector<uint32_t> begin = {0};
  bool one_each = true;
};

class RowBlockTest : public ::testing::Test {
 protected:
  // A job with so many slots, the keys of one of which have values or not.
  void set_slots(size_t slots, bool values) {
    options_ = DataOptions();
    options_.labels = {"label"};
    options_.dense.resize(kDense);
    options_.weights = true;
    options_.group = "sid";
    options_.slots.resize(slots);
    map_ = ColumnMap();
    map_.labels = {want(As::kNumbers)};
    map_.weight = want(As::kNumbers);
    map_.group = want(As::kKeys);
    const uint32_t of_slot = want(As::kNumbers);
    for (size_t i = 0; i < kDense; ++i) map_.dense.push_back(want(As::kNumbers));
    for (size_t slot = 0; slot < slots; ++slot) {
      options_.slots[slot].name = slot_name(slot);
      options_.slots[slot].values = values && slot == kValued;
      map_.slots.push_back(want(As::kKeys));
      map_.values.push_back(values && slot == kValued ? of_slot : ColumnMap::kNone);
    }
  }
  uint32_t want(As as) {
    map_.wanted.push_back({static_cast<uint32_t>(map_.wanted.size()), as});
    return static_cast<uint32_t>(map_.wanted.size() - 1);
  }
  bool has_values() const { return options_.slots[kValued].values; }

  // Fills `out` from the rows `from` to `to`.
  Status fill(const Columns& c, uint32_t from, uint32_t to, Batch* out) const {
    const Flat label(c.label), weight(c.weight), values(c.values);
    const Flat sid(c.sid);
    std::vector<Values> all = {label.values(), weight.values(), sid.values(), values.values()};
    std::vector<Flat<float>> dense(c.dense.begin(), c.dense.end());
    for (const auto& column : dense) all.push_back(column.values());
    std::vector<Flat<uint64_t>> slots(c.slots.begin(), c.slots.end());
    for (const auto& slot : slots) all.push_back(slot.values());
    const RowLayout layout{RowReading(options_), map_};
    return fill_rows(layout, all.data(), {from, to - from, "f.parquet", 1000 + from}, out);
  }

  Batch plain(const Columns& c, uint32_t from, uint32_t to) const;
  void expect_equal(const Columns& c, uint32_t from, uint32_t to, const Batch& got) const;

  DataOptions options_;
  ColumnMap map_;
};

// As the contract says it, row by row.
Batch RowBlockTest::plain(const Columns& c, uint32_t from, uint32_t to) const {
  Batch out;
  const auto first = [](const auto& values, auto missing) {
    return values.empty() ? missing : values[0];
  };
  out.begin = {0};
  for (size_t row = from; row < to; ++row) {
    out.labels.push_back(first(c.label[row], NAN));
    out.weights.push_back(first(c.weight[row], 1.0F));
    out.groups.push_back(first(c.sid[row], uint64_t{0}));
    for (const auto& column : c.dense) out.dense_values.push_back(first(column[row], 0.0F));
    for (size_t slot = 0; slot < c.slots.size(); ++slot) {
      const std::vector<uint64_t>& keys = c.slots[slot][row];
      for (const uint64_t key : keys)
        out.keys.push_back(options_.raw_keys ? key
                                             : hash_pair(key_space(slot_name(slot), ""), key));
      out.begin.push_back(static_cast<uint32_t>(out.keys.size()));
      if (!has_values()) continue;
      const std::vector<float> ones(keys.size(), 1.0F);
      const std::vector<float>& values = slot == kValued ? c.values[row] : ones;
      out.values.insert(out.values.end(), values.begin(), values.end());
    }
  }
  bool one_each = true;  // in all rows of the columns
  for (const auto& slot : c.slots)
    for (const auto& keys : slot) one_each = one_each && keys.size() == 1;
  if (one_each && !has_values()) out.begin.clear();
  return out;
}

void RowBlockTest::expect_equal(const Columns& c, uint32_t from, uint32_t to,
                                const Batch& got) const {
  const Batch want = plain(c, from, to);
  EXPECT_EQ(got.size, to - from);
  EXPECT_EQ(got.slots, c.slots.size());
  EXPECT_EQ(got.dense, kDense);
  EXPECT_EQ(got.keys, want.keys);
  EXPECT_EQ(got.begin, want.begin);
  EXPECT_EQ(got.values, want.values);
  EXPECT_EQ(got.weights, want.weights);
  EXPECT_EQ(got.groups, want.groups);
  EXPECT_EQ(got.dense_values, want.dense_values);
  ASSERT_EQ(got.labels.size(), want.labels.size());
  for (size_t i = 0; i < want.labels.size(); ++i)
    EXPECT_TRUE(got.labels[i] == want.labels[i] ||
                (std::isnan(got.labels[i]) && std::isnan(want.labels[i])));
}

// `gaps`: from this row on, columns without a value and up to `most` keys in a slot.
Columns random_columns(uint32_t rows, uint32_t gaps, size_t slots, uint32_t most,
                       std::mt19937* random) {
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
  c.dense.resize(kDense);
  c.slots.resize(slots);
  const size_t whole = (*random)() % kDense;  // a column that always has a number
  for (uint32_t row = 0; row < rows; ++row) {
    const auto count = [&](uint32_t up_to) { return row < gaps ? 1 : (*random)() % (up_to + 1); };
    for (auto* column : {&c.label, &c.weight}) column->push_back(numbers(count(1)));
    for (size_t i = 0; i < kDense; ++i) c.dense[i].push_back(numbers(i < whole ? 1 : count(1)));
    c.sid.push_back(keys(count(1)));
    for (size_t i = 0; i < slots; ++i) c.slots[i].push_back(keys(i % 3 == 2 ? 1 : count(most)));
    c.values.push_back(numbers(c.slots[kValued].back().size()));
  }
  return c;
}

TEST_F(RowBlockTest, EqualsThePlainLayout) {
  std::mt19937 random(7);
  Batch out;  // used again and again, as a pool does
  for (int round = 0; round < 300; ++round) {
    const uint32_t rows = 1 + random() % 400;
    const uint32_t gaps = round % 3 == 0 ? rows : random() % rows;
    const size_t slots = 2 + random() % 11;  // side by side, and slot by slot
    set_slots(slots, round % 5 == 0);
    options_.raw_keys = round % 2 == 0;
    const Columns columns = random_columns(rows, gaps, slots, round % 4 == 0 ? 1 : 9, &random);
    const uint32_t from = random() % rows, to = from + 1 + random() % (rows - from);
    const Status filled = fill(columns, from, to, &out);
    ASSERT_TRUE(filled.is_ok()) << filled.message();
    expect_equal(columns, from, to, out);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST_F(RowBlockTest, ValuesThatAreNotAsManyAsKeysAreNamed) {
  set_slots(6, true);
  std::mt19937 random(8);
  Columns columns = random_columns(10, 10, 6, 9, &random);
  columns.values[7].push_back(1);
  Batch out;
  EXPECT_TRUE(fill(columns, 0, 7, &out).is_ok());
  const Status filled = fill(columns, 3, 10, &out);
  EXPECT_EQ(filled.code(), Code::kInvalid);
  EXPECT_EQ(filled.message(), "f.parquet: record 1008: slot 'b' has 1 keys, but 2 values of them");
}

// Counted before anything is read: a batch points at its keys with 32 bits.
TEST(RowBlock, MoreKeysThanABatchCanHoldAreRefused) {
  constexpr uint32_t kRow = 1U << 31;
  DataOptions options;
  options.labels.clear();
  options.slots = {{"a", ""}, {"b", ""}};
  RowLayout layout{RowReading(options), {}};
  layout.map.wanted = {{0, As::kKeys}, {1, As::kKeys}};
  layout.map.slots = {0, 1};
  layout.map.values = {ColumnMap::kNone, ColumnMap::kNone};
  const uint32_t begin[] = {0, kRow};
  const Values columns[] = {{nullptr, nullptr, begin}, {nullptr, nullptr, begin}};
  const std::string path = "x.parquet";
  Batch batch;
  EXPECT_EQ(fill_rows(layout, columns, {0, 1, path, 6}, &batch).message(),
            "x.parquet: records 7 to 7 have 4294967296 keys, more than 2^32; take a smaller "
            "data.batch");
}

}  // namespace
}  // namespace flux
