#include "flux/data/parquet/parquet_block.h"

#include <limits>
#include <optional>

#include <gtest/gtest.h>

namespace flux {
namespace {

using parquet_plugin::LargeNumber;
using parquet_plugin::Values;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

DataOptions options() {
  DataOptions out;
  out.format = "parquet";
  out.dense_transform = "none";
  out.dense = {"age", "price"};
  out.slots = {{"user", ""}, {"tags", "", false, true}};
  out.label_rules = {{0, 0}};
  return out;
}

// Three rows: one key of user, and one, two and no tags.
Batch three_rows() {
  Batch rows;
  rows.size = 3;
  rows.slots = rows.dense = 2;
  rows.labels = {0, 1, 0};
  rows.dense_values = {1, 2, 3, 4, 5, 6};
  rows.begin = {0, 1, 2, 3, 5, 6, 6};
  rows.keys = {10, 20, 11, 21, 22, 12};
  rows.values = {1, 0.5F, 1, 2, 3, 1};
  return rows;
}

// The columns label, age, price, user, tags and tags_values.
std::shared_ptr<const RowLayout> layout() {
  ColumnMap map;
  map.labels = {0};
  map.dense = {1, 2};
  map.slots = {3, 4};
  map.values = {ColumnMap::kNone, 5};
  return std::make_shared<const RowLayout>(RowLayout{RowReading(options()), std::move(map)});
}

// What reading the last two rows, the second of them first, says.
std::string said(const Batch& rows, const LargeNumbers& large = {}) {
  const ParquetBlock block(std::make_shared<const ParquetReading>(options()), "a.parquet",
                           {layout(), nullptr, std::make_shared<const Batch>(rows), large},
                           {0, 0, 3, 0, 3}, 2, {2, 1, 0});
  Batch out;
  return block.read_batch(0, &out).message();
}

TEST(ParquetBlock, NumbersThatAreNoneAreNamedByRecordAndColumn) {
  EXPECT_EQ(said(three_rows()), "");
  Batch rows = three_rows();
  rows.dense_values[3] = kInfinite;
  EXPECT_EQ(said(rows),
            "a.parquet: record 2: dense feature 'price' is infinite; it must be a number");
  rows = three_rows();
  rows.labels[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(said(rows),
            "a.parquet: record 3: label 'label' is missing or not a number; it must be a number");
  rows = three_rows();
  rows.values[4] = -kInfinite;
  EXPECT_EQ(said(rows),
            "a.parquet: record 2: a value of slot 'tags' is infinite; it must be a number");
  rows = three_rows();
  rows.labels[1] = 3;
  EXPECT_NE(said(rows).find("a.parquet: record 2: label 'label' is 3, but its loss needs"),
            std::string::npos);
}

// What a float cannot hold is shown as the file has it.
TEST(ParquetBlock, NumbersThatAreTooLargeAreShown) {
  const LargeNumber prices[] = {{0, 1e40}, {1, -2e300}}, values[] = {{2, 5e60}};
  const uint32_t tags[] = {0, 1, 3, 3};
  Values columns[6] = {};
  columns[2].large = prices;
  columns[2].large_count = 2;
  columns[5].begin = tags;
  columns[5].large = values;
  columns[5].large_count = 1;
  const LargeNumbers large(columns, 0, 3);
  Batch rows = three_rows();
  rows.dense_values[3] = -kInfinite;
  EXPECT_EQ(said(rows, large),
            "a.parquet: record 2: dense feature 'price' is -2e+300; a float holds at most 3.4e38");
  rows = three_rows();
  rows.values[4] = kInfinite;
  EXPECT_EQ(said(rows, large),
            "a.parquet: record 2: a value of slot 'tags' is 5e+60; a float holds at most 3.4e38");
  rows.values = {1, 0.5F, 1, kInfinite, 3, 1};
  EXPECT_EQ(said(rows, large),
            "a.parquet: record 2: a value of slot 'tags' is infinite; it must be a number")
      << "another of the same slot";
  rows = three_rows();
  rows.dense_values[5] = kInfinite;
  EXPECT_EQ(said(rows, large),
            "a.parquet: record 3: dense feature 'price' is infinite; it must be a number");
}

// Of columns that have the rows of several blocks, those of one.
TEST(ParquetBlock, LargeNumbersOfSomeRowsAreCountedFromTheirFirst) {
  const LargeNumber prices[] = {{0, 1e40}, {3, 2e40}, {4, 3e40}}, values[] = {{2, 4e40}, {4, 5e40}};
  const uint32_t tags[] = {0, 1, 3, 3, 4, 5};
  Values columns[2] = {};
  columns[0].large = prices;
  columns[0].large_count = 3;
  columns[1].begin = tags;
  columns[1].large = values;
  columns[1].large_count = 2;
  const LargeNumbers large(columns, 1, 3);
  for (uint32_t row = 0; row < 5; ++row) {
    EXPECT_EQ(large.find(0, row, 0), row == 2 ? std::optional(2e40) : std::nullopt) << row;
    EXPECT_EQ(large.find(1, row, 0), std::nullopt) << row;
    EXPECT_EQ(large.find(1, row, 1), row == 0 ? std::optional(4e40) : std::nullopt) << row;
  }
}

}  // namespace
}  // namespace flux
