#include "flux/data/bad_records.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "flux/data/batch_place.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

DataOptions options_of(uint32_t batch, uint64_t allowed, bool shuffle = false) {
  DataOptions options;
  options.format = "feasign";
  options.slots = {{"item", "", false, false}};
  options.raw_keys = true;
  options.batch_size = batch;
  options.shuffle = shuffle;
  options.bad_records = allowed;
  return options;
}

// Line i has the key i; those of `bad` cannot be read.
std::string lines(uint64_t n, const std::vector<uint64_t>& bad, uint64_t first = 0) {
  std::string text;
  for (uint64_t i = first; i < first + n; ++i)
    text += std::find(bad.begin(), bad.end(), i) == bad.end() ? fmt::format("1 item:{}\n", i)
                                                              : "1 item:x\n";
  return text;
}

// The keys of all batches, in the order of the blocks.
std::vector<uint64_t> keys_of(const Geometry& geometry, const DataOptions& options) {
  std::vector<uint64_t> out;
  const auto data = Dataset::open(geometry, options);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
  if (!data.is_ok()) return out;
  for (uint32_t b = 0; b < geometry.blocks.size(); ++b) {
    const auto block = data.value()->open_block(b, 3);
    EXPECT_TRUE(block.is_ok()) << block.status().message();
    for (uint32_t i = 0; block.is_ok() && i < geometry.batches_in(b); ++i) {
      Batch batch;
      const Status status = block.value()->read_batch(i, &batch);
      EXPECT_TRUE(status.is_ok()) << status.message();
      EXPECT_EQ(batch.size, geometry.batch_records(b, i));
      out.insert(out.end(), batch.keys.begin(), batch.keys.end());
    }
  }
  return out;
}

std::vector<uint64_t> good_of(uint64_t n, const std::vector<uint64_t>& bad) {
  std::vector<uint64_t> out;
  for (uint64_t i = 0; i < n; ++i)
    if (std::find(bad.begin(), bad.end(), i) == bad.end()) out.push_back(i);
  return out;
}

// Two files, 200 lines and 40; blocks of a batch each.
class BadRecords : public ::testing::TestWithParam<std::vector<uint64_t>> {};

TEST_P(BadRecords, AreTakenOutOfThePassAndNothingElseIs) {
  const std::vector<uint64_t>& bad = GetParam();
  const TestDirectory folder;
  const std::vector<std::string> files = {folder.write("a.txt", lines(200, bad)),
                                          folder.write("b.txt", lines(40, bad, 200))};
  for (const bool shuffle : {false, true}) {
    const DataOptions options = options_of(10, bad.size(), shuffle);
    Geometry geometry = Dataset::scan(files, options, 1).value();
    const auto found = set_aside_bad_records(options, 2, nullptr, &geometry);
    ASSERT_TRUE(found.is_ok()) << found.status().message();
    ASSERT_EQ(found.value().size(), bad.size());
    EXPECT_EQ(geometry.bad_records(), bad.size());
    EXPECT_EQ(geometry.records(), 240 - bad.size());
    const Geometry back = Geometry::from_json(geometry.to_json()).value();
    EXPECT_EQ(back.hash(), geometry.hash());
    EXPECT_EQ(back.bad_records(), bad.size());
    std::vector<uint64_t> keys = keys_of(back, options);
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(keys, good_of(240, bad));
    for (size_t i = 0; i < bad.size(); ++i) {
      const uint64_t line = bad[i] < 200 ? bad[i] + 1 : bad[i] - 199;
      EXPECT_EQ(found.value()[i].why.message(),
                fmt::format("{}:{}:8: key 'x' of slot 'item' is not a whole number below 2^64",
                            files[bad[i] >= 200], line));
      EXPECT_NE(found.value()[i].place.find(fmt::format("(record {})", line)), std::string::npos)
          << found.value()[i].place;
    }
  }
}

std::vector<uint64_t> range(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> out;
  for (; begin < end; ++begin) out.push_back(begin);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Places, BadRecords,
                         ::testing::Values(std::vector<uint64_t>{}, std::vector<uint64_t>{0},
                                           std::vector<uint64_t>{9, 10, 199, 200, 239},
                                           range(0, 10),     // all of the first block
                                           range(0, 35),     // and some after it
                                           range(60, 90),    // blocks in the middle
                                           range(190, 200),  // the last of a file
                                           range(185, 215),  // around the end of a file
                                           range(0, 200),    // a whole file
                                           range(200, 240),  // the last one
                                           range(3, 240)     // and most of the other
                                           ));

// Where a later batch of a block with bad lines lies, and its number for the counting model.
TEST(BadRecords, NumbersStayThoseOfLines) {
  const TestDirectory folder;
  const std::string path = folder.write("a.txt", lines(30, {2, 3, 25}));
  const DataOptions options = options_of(10, 3);
  Geometry geometry = Dataset::scan({&path, 1}, options, 1).value();
  ASSERT_TRUE(set_aside_bad_records(options, 1, nullptr, &geometry).is_ok());
  EXPECT_EQ(records_of_batch(geometry, 0, 0, 0), (std::vector<uint64_t>{1, 2, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(records_of_batch(geometry, 2, 0, 0),
            (std::vector<uint64_t>{21, 22, 23, 24, 25, 27, 28, 29, 30}));
  EXPECT_EQ(describe_batch(geometry, 2, 0),
            fmt::format("{}:{}..{} (9 records of 21 to 30)", path, geometry.blocks[2].begin,
                        geometry.blocks[2].end));
  EXPECT_EQ(geometry.blocks[2].number_in_pass(6), 23U) << "line 27 is the 24th good record";
}

// Blocks with mistakes are not read a second time, which packed text would be from its begin.
TEST(BadRecords, TheCommandOfAPipeIsNotStartedForEveryMistake) {
  const TestDirectory folder;
  std::vector<uint64_t> bad;
  for (uint64_t i = 0; i < 400; i += 10) bad.push_back(i);
  const std::string path = folder.write("a.txt", lines(400, bad));
  const std::string starts = folder.path("starts");
  DataOptions options = options_of(10, bad.size());
  options.pipe = {{"/bin/sh", "-c", fmt::format("echo >> {}; cat", starts)}, 60, 1};
  Geometry geometry = Dataset::scan({&path, 1}, options, 1).value();
  ASSERT_EQ(geometry.blocks.size(), 40U);
  ASSERT_EQ(std::filesystem::file_size(starts), 1U);
  const auto found = set_aside_bad_records(options, 1, nullptr, &geometry);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  EXPECT_EQ(found.value().size(), bad.size());
  EXPECT_EQ(std::filesystem::file_size(starts), 2U) << "once to scan, once to parse";
}

TEST(BadRecords, OneMoreThanAllowedStops) {
  const TestDirectory folder;
  const std::string path = folder.write("a.txt", lines(100, {5, 50, 77}));
  const DataOptions options = options_of(10, 2);
  Geometry geometry = Dataset::scan({&path, 1}, options, 1).value();
  EXPECT_EQ(
      set_aside_bad_records(options, 1, nullptr, &geometry).status().message(),
      path +
          ":6:8: key 'x' of slot 'item' is not a whole number below 2^64\nthis and 2 more bad "
          "records were found so far, more than data.bad_records: 2 allows to be set aside; "
          "`flux data validate` names them all");
}

// A file without records at the end of a cut is the vocabulary; such a one before it is not.
TEST(BadRecords, AFileOfSentencesWithoutAGoodOneIsNoVocabulary) {
  const TestDirectory folder;
  DataOptions options;
  options.format = "sentences";
  options.vocabulary = folder.write("v.txt", "a 3\nb 2\n");
  options.batch_size = 2;
  options.bad_records = 3;
  const std::vector<std::string> files = {folder.write("a.txt", "a b\nb\n"),
                                          folder.write("b.txt", "\xff\n\xff\n\xff\n")};
  Geometry geometry = Dataset::scan(files, options, 1).value();
  ASSERT_TRUE(set_aside_bad_records(options, 1, nullptr, &geometry).is_ok());
  EXPECT_EQ(geometry.bad_records(), 3U);
  const auto data = Dataset::open(geometry, options);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
}

TEST(BadRecords, NothingGoodStopsToo) {
  const TestDirectory folder;
  const std::string path = folder.write("a.txt", lines(3, {0, 1, 2}));
  const DataOptions options = options_of(10, 5);
  Geometry geometry = Dataset::scan({&path, 1}, options, 1).value();
  EXPECT_EQ(set_aside_bad_records(options, 1, nullptr, &geometry).status().message(),
            path +
                ":1:8: key 'x' of slot 'item' is not a whole number below 2^64\n"
                "and no other record is good either");
}

TEST(BadRecords, BlockFilesHaveNone) {
  DataOptions options = options_of(10, 5);
  options.format = "blocks";
  options.raw_keys = false;
  const std::string path = "a";
  EXPECT_EQ(Dataset::scan({&path, 1}, options, 1).status().message(),
            "data.bad_records is not for format blocks, whose records were checked when they were "
            "written; set bad ones aside where they come from");
}

}  // namespace
}  // namespace flux
