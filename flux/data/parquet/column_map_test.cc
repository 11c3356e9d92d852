#include "flux/data/parquet/column_map.h"

#include <gtest/gtest.h>

#include "flux/base/text.h"

namespace flux {
namespace {

using parquet_plugin::Column;
using parquet_plugin::Kind;

TEST(GuessParquet, ColumnsThatCannotBeReadAreNamed) {
  const std::vector<Column> columns = {{"label", "INT64", Kind::kWhole, false},
                                       {"when", "INT64 (Timestamp)", Kind::kOther, false},
                                       {"price", "DOUBLE", Kind::kReal, false},
                                       {"vector", "list of DOUBLE", Kind::kReal, true},
                                       {"tags", "list of INT64", Kind::kWhole, true},
                                       {"tags_values", "list of DOUBLE", Kind::kReal, true}};
  std::string note;
  const auto options = guess_parquet_options("a.parquet", columns, &note);
  ASSERT_TRUE(options.is_ok()) << options.status().message();
  EXPECT_EQ(note,
            "a.parquet: not read, as their types cannot be: 'when' (INT64 (Timestamp)), 'vector' "
            "(list of DOUBLE)");
  EXPECT_EQ(join(options.value().dense, ","), "price");
  ASSERT_EQ(options.value().slots.size(), 1U);
  EXPECT_TRUE(options.value().slots[0].values);
}

TEST(GuessParquet, NothingIsSaidWhereAllIsRead) {
  const std::vector<Column> columns = {{"label", "INT64", Kind::kWhole, false},
                                       {"weight", "FLOAT", Kind::kReal, false},
                                       {"sid", "INT64", Kind::kWhole, false},
                                       {"city", "BYTE_ARRAY (String)", Kind::kText, false}};
  std::string note;
  ASSERT_TRUE(guess_parquet_options("a.parquet", columns, &note).is_ok());
  EXPECT_EQ(note, "");
}

}  // namespace
}  // namespace flux
