// What is said about a batch leads back to its records: the bytes named are read from the file and
// held against what the batch contains.
#include "flux/data/batch_place.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "flux/data/criteo.h"
#include "flux/data/dataset.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

// Lines of different lengths; the label tells odd records from even ones, the first dense value is
// the record's number in the file, from 1.
std::string make_text(uint32_t records, bool last_newline = true) {
  std::string out;
  for (uint32_t i = 1; i <= records; ++i) {
    out += fmt::format("{}\t{}", i % 2, i);
    for (uint32_t d = 1; d < kCriteoDense; ++d) out += i % 3 == 0 ? "\t" : fmt::format("\t{}", d);
    for (uint32_t s = 0; s < kCriteoSlots; ++s) out += fmt::format("\t{:x}", i + s);
    if (i < records || last_newline) out += "\n";
  }
  return out;
}

struct Place {
  // "path:begin..end (records)"
  explicit Place(const std::string& text) {
    const size_t open = text.find(" (");
    const size_t dots = text.rfind("..", open);
    const size_t colon = text.rfind(':', dots);
    if (open == std::string::npos || dots == std::string::npos || colon == std::string::npos ||
        text.back() != ')')
      return;
    const std::string from = text.substr(colon + 1, dots - colon - 1);
    const std::string to = text.substr(dots + 2, open - dots - 2);
    const auto is_number = [](const std::string& t) {
      return !t.empty() && t.find_first_not_of("0123456789") == std::string::npos;
    };
    if (!is_number(from) || !is_number(to)) return;
    found = true;
    path = text.substr(0, colon);
    begin = std::stoull(from);
    end = std::stoull(to);
    records = text.substr(open + 2, text.size() - open - 3);
  }
  // Record numbers in the bytes named.
  std::set<uint64_t> lines() const {
    std::set<uint64_t> out;
    const std::string bytes = read_text(path).substr(begin, end - begin);
    size_t at = 0;
    while (at < bytes.size()) {
      const size_t tab = bytes.find('\t', at);
      out.insert(std::stoull(bytes.substr(tab + 1)));
      at = std::min(bytes.find('\n', at), bytes.size() - 1) + 1;
    }
    return out;
  }
  bool found = false;
  std::string path, records;
  uint64_t begin = 0, end = 0;
};

struct Files {
  explicit Files(bool shuffle) {
    options.batch_size = 7;
    options.shuffle = shuffle;
    options.dense_transform = "none";
    const std::string a = folder.write("a.tsv", make_text(1000));
    const std::string b = folder.write("b.tsv", make_text(20, false));
    const std::string c = folder.write("c.tsv.gz", gzip_text(make_text(30)));
    auto geometry = Dataset::scan(std::vector<std::string>{a, b, c}, options, 1);
    EXPECT_TRUE(geometry.is_ok()) << geometry.status().message();
    data = std::move(Dataset::open(geometry.value(), options)).value();
  }
  TestDirectory folder;
  DataOptions options;
  std::unique_ptr<Dataset> data;
};

TEST(BatchPlace, LeadsBackToTheRecordsOfEveryBatch) {
  constexpr uint32_t kEpoch = 3;
  for (const bool shuffle : {false, true}) {
    const Files files(shuffle);
    const Geometry& g = files.data->geometry();
    ASSERT_GT(g.batches_in(0), 1U);
    for (uint32_t block = 0; block < g.blocks.size(); ++block) {
      const auto reader = files.data->open_block(block, kEpoch);
      ASSERT_TRUE(reader.is_ok());
      for (uint32_t j = 0; j < g.batches_in(block); ++j) {
        Batch batch;
        ASSERT_TRUE(reader.value()->read_batch(j, &batch).is_ok());
        std::vector<uint64_t> want;
        for (uint32_t i = 0; i < batch.size; ++i)
          want.push_back(static_cast<uint64_t>(batch.dense_values[i * kCriteoDense]));
        EXPECT_EQ(records_of_batch(g, block, j, kEpoch), want);
        const std::set<uint64_t> sorted(want.begin(), want.end());
        const std::string whole = describe_batch(g, block, j, kEpoch);
        const std::string exact = reader.value()->describe(j);
        if (g.files[g.blocks[block].file].packing == Packing::kGzip) {
          EXPECT_FALSE(Place(exact).found) << "no bytes to seek to";
          EXPECT_TRUE(exact.starts_with(g.files[g.blocks[block].file].path + ": ")) << exact;
          continue;
        }
        const Place of_block(whole), of_batch(exact);
        ASSERT_TRUE(of_block.found && of_batch.found) << whole << " " << exact;
        const std::set<uint64_t> around = of_block.lines(), inside = of_batch.lines();
        EXPECT_TRUE(std::includes(around.begin(), around.end(), sorted.begin(), sorted.end()));
        EXPECT_TRUE(std::includes(inside.begin(), inside.end(), sorted.begin(), sorted.end()));
        EXPECT_EQ(*inside.begin(), *sorted.begin());
        EXPECT_EQ(*inside.rbegin(), *sorted.rbegin());
        EXPECT_TRUE(shuffle || inside == sorted);
        for (uint32_t i = 0; i < batch.size; ++i)
          EXPECT_EQ(Place(reader.value()->describe_example(j, i)).lines(),
                    std::set<uint64_t>{want[i]});
        EXPECT_EQ(reader.value()->describe_example(j, batch.size), "");
      }
      EXPECT_EQ(reader.value()->describe(99), "");
    }
  }
}

TEST(BatchPlace, Texts) {
  Geometry g;
  g.batch_size = 10;
  g.files = {{"a.tsv", 500, 45, Packing::kPlain}, {"b.tsv.gz", 70, 15, Packing::kGzip}};
  g.blocks = {{0, 0, 200, 0, 20}, {0, 200, 400, 20, 20}, {0, 400, 500, 40, 5}, {1, 0, 90, 45, 15}};
  number_lines(&g);
  EXPECT_EQ(describe_batch(g, 1, 0), "a.tsv:200..400 (records 21 to 30 of 21 to 40)");
  EXPECT_EQ(describe_batch(g, 1, 1), "a.tsv:200..400 (records 31 to 40 of 21 to 40)");
  EXPECT_EQ(describe_batch(g, 2, 0), "a.tsv:400..500 (records 41 to 45)");
  EXPECT_EQ(describe_batch(g, 3, 1), "b.tsv.gz: records 11 to 15 of 1 to 15");
  g.shuffle_seed = 5;
  EXPECT_EQ(describe_batch(g, 1, 1, 2),
            "a.tsv:200..400 (10 records of 21 to 40, shuffled for epoch 2)");
  EXPECT_EQ(describe_batch(g, 2, 0, 2), "a.tsv:400..500 (records 41 to 45)") << "all of the block";
  EXPECT_EQ(describe_batch(g, 3, 1, 0), "b.tsv.gz: 5 records of 1 to 15, shuffled for epoch 0");
}

TEST(BatchPlace, WhatTheGeometryLacksIsSaid) {
  Geometry g;
  EXPECT_EQ(describe_batch(g, 0, 0), "batch 0 of block 0, which the data does not have");
  g.batch_size = 10;
  g.blocks = {{7, 0, 10, 0, 1}};
  EXPECT_EQ(describe_batch(g, 0, 0), "batch 0 of block 0, which the data does not have");
  g.files = {{"a.tsv", 10, 1, Packing::kPlain}};
  g.blocks[0].file = 0;
  EXPECT_EQ(describe_batch(g, 0, 1), "batch 1 of block 0, which the data does not have");
  EXPECT_EQ(describe_batch(g, 0, 0), "a.tsv:0..10 (records 1 to 1)");
  EXPECT_TRUE(records_of_batch(g, 4, 0, 0).empty());
}

}  // namespace
}  // namespace flux
