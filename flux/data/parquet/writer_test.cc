#include "flux/data/parquet/writer.h"

#include <gtest/gtest.h>

#include "flux/data/test_files.h"

namespace flux {
namespace {

// Known before the plug-in is looked for.
std::string refusal(const RecordSchema& schema) {
  const TestDirectory folder;
  const Status status = ParquetWriter::create(folder.path("a.parquet"), schema).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  return status.message();
}

TEST(ParquetWriter, TwoColumnsOfOneNameAreRefused) {
  RecordSchema schema;
  schema.labels = {"label"};
  schema.slots = {"x", "x_values"};
  schema.values = true;
  EXPECT_EQ(refusal(schema),
            "--to parquet: the format cannot hold the values of slot 'x' beside the slot "
            "'x_values': both would be the column 'x_values'; rename one of them, or write another "
            "format");
  schema.slots = {"x"};
  schema.dense = {"x_values"};
  EXPECT_NE(std::string::npos,
            refusal(schema).find("the values of slot 'x' beside the dense feature 'x_values': "));
  schema.values = false;
  schema.dense = {"price"};
  schema.slots = {"sid"};
  schema.groups = true;
  EXPECT_NE(std::string::npos,
            refusal(schema).find("the slot 'sid' beside the groups (data.group): "));
}

}  // namespace
}  // namespace flux
