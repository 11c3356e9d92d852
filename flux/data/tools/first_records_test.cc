// The first records of files, against those that a scan finds.
#include "flux/data/tools/first_records.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/data/blocks/writer.h"
#include "flux/data/test_files.h"
#include "flux/data/tools/whole_data.h"

namespace flux {
namespace {

DataOptions options_of() {
  DataOptions options;
  options.format = "feasign";
  options.slots = {{"item", "", false, false}};
  options.raw_keys = true;
  return options;
}

struct Read {
  Status status;
  uint64_t records = 0;
  std::vector<uint64_t> keys;
  std::vector<std::string> refused, names;
};

Read read(const std::string& path, const DataOptions& options, uint64_t records) {
  Read out;
  const auto data = FirstRecords::open({path}, options);
  if (!data.is_ok()) {
    out.status = data.status();
    return out;
  }
  const auto got = data.value().read(
      0, records,
      [&](const Status& refused, const Batch& batch, const std::vector<std::string>& names) {
        out.names.insert(out.names.end(), names.begin(), names.end());
        if (refused.is_ok())
          out.keys.insert(out.keys.end(), batch.keys.begin(), batch.keys.end());
        else
          out.refused.push_back(refused.message());
        return Status::ok();
      });
  out.status = got.status();
  if (got.is_ok()) out.records = got.value();
  return out;
}

TEST(FirstRecords, RefusedOnesAreNamedAndPassedOver) {
  const TestDirectory dir;
  const std::string path = dir.write("a", "1 item:1\nnonsense\n0 item:2\n1 item:3\n");
  const Read all = read(path, options_of(), 10);
  EXPECT_TRUE(all.status.is_ok()) << all.status.message();
  EXPECT_EQ(all.records, 4U);
  EXPECT_EQ(all.keys, (std::vector<uint64_t>{1, 2, 3}));
  ASSERT_EQ(all.refused.size(), 1U);
  EXPECT_TRUE(all.refused[0].starts_with(path + ":2:1: label ")) << all.refused[0];
  const Read first = read(path, options_of(), 1);
  EXPECT_EQ(first.records, 1U);
  EXPECT_TRUE(first.refused.empty()) << "it is behind what was asked for";
}

TEST(FirstRecords, AreThoseOfAScanInEveryFormat) {
  const TestDirectory dir;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("{} item:{}\n", i % 2, i);
  const std::string path = dir.write("a", text);
  const auto whole = WholeData::open({path}, options_of(), 1);
  ASSERT_TRUE(whole.is_ok());
  const std::string blocks = dir.path("a.blocks");
  const auto writer = BlockFileWriter::create(blocks, whole.value().schema());
  ASSERT_TRUE(writer.is_ok());
  std::vector<uint64_t> keys;
  ASSERT_TRUE(whole.value()
                  .read([&](const Batch& batch) {
                    keys.insert(keys.end(), batch.keys.begin(), batch.keys.end());
                    return writer.value()->add(batch);
                  })
                  .is_ok());
  ASSERT_TRUE(writer.value()->finish().is_ok());
  const std::string packed = dir.write("a.gz", gzip_text(text));
  for (const std::string& file : {path, packed, blocks}) {
    const DataOptions options = file == blocks ? block_file_options(options_of()) : options_of();
    const Read got = read(file, options, 5000);
    EXPECT_TRUE(got.status.is_ok()) << got.status.message();
    EXPECT_EQ(got.records, 3000U);
    EXPECT_EQ(got.keys, keys);
  }
}

TEST(FirstRecords, HaveTheNamesOfTheirLines) {
  const TestDirectory dir;
  const std::string path =
      dir.write("a", "1 item:1 id=x\n0 item:2\n0 item:? id=y\n1 id=z item:3\n");
  EXPECT_EQ(read(path, options_of(), 9).names, (std::vector<std::string>{"x", "", "z"}));
}

TEST(FirstRecords, WhatTheSinkSaysEndsTheReading) {
  const TestDirectory dir;
  const auto data = FirstRecords::open({dir.write("a", "1 item:1\n0 item:2\n")}, options_of());
  ASSERT_TRUE(data.is_ok());
  int seen = 0;
  const auto got = data.value().read(0, 5, [&](const Status&, const Batch&, const auto&) {
    ++seen;
    return error(Code::kCancelled, "enough");
  });
  EXPECT_EQ(got.status().code(), Code::kCancelled);
  EXPECT_EQ(seen, 1);
}

TEST(FirstRecords, AFileWithoutOneIsRefused) {
  const TestDirectory dir;
  const std::string path = dir.write("a", "");
  const Read got = read(path, options_of(), 5);
  EXPECT_EQ(got.status.code(), Code::kInvalid);
  EXPECT_TRUE(got.status.message().starts_with(path + ": holds no record"));
}

}  // namespace
}  // namespace flux
