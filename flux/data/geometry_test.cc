#include "flux/data/geometry.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

namespace flux {
namespace {

Geometry sample() {
  Geometry g;
  g.format = "criteo_tsv";
  g.batch_size = 10;
  g.shuffle_seed = 7;
  g.files = {{"data/a \"1\".tsv", 500, 45, Packing::kPlain},
             {"data/b.tsv.gz", 70, 5, Packing::kGzip}};
  g.blocks = {{0, 0, 200, 0, 20}, {0, 200, 400, 20, 20}, {0, 400, 500, 40, 5}, {1, 0, 90, 45, 5}};
  return g;
}

TEST(Geometry, CountsBatches) {
  const Geometry g = sample();
  EXPECT_EQ(g.records(), 50U);
  EXPECT_EQ(g.batches(), 6U);
  EXPECT_EQ(g.batches_in(1), 2U);
  EXPECT_EQ(g.batches_in(2), 1U);
  EXPECT_EQ(g.batch_records(1, 1), 10U);
  EXPECT_EQ(g.batch_records(2, 0), 5U);
}

TEST(Geometry, CutsDependOnRecordsAndBatchSizeOnly) {
  EXPECT_EQ(block_batches(1, 1000), 1U);
  EXPECT_EQ(block_batches(100'000, 1000), 1U);
  EXPECT_EQ(block_batches(1'000'000, 1000), 15U);
  EXPECT_EQ(block_batches(2'047'001, 1000), 32U);
  EXPECT_EQ(block_batches(UINT64_MAX, 1), kBlockBatches);
}

TEST(Geometry, JsonRoundTrip) {
  const Geometry g = sample();
  const auto back = Geometry::from_json(g.to_json());
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back.value().hash(), g.hash());
  EXPECT_EQ(back.value().to_json(), g.to_json());
  EXPECT_TRUE(geometry_differences(g, back.value()).empty());
}

TEST(Geometry, HashSeesEveryField) {
  const uint64_t hash = sample().hash();
  EXPECT_EQ(hash, sample().hash());
  const auto changed = [&](auto change) {
    Geometry g = sample();
    change(g);
    EXPECT_NE(g.hash(), hash);
    EXPECT_FALSE(geometry_differences(sample(), g).empty());
  };
  changed([](Geometry& g) { g.format = "other"; });
  changed([](Geometry& g) { g.batch_size = 11; });
  changed([](Geometry& g) { g.shuffle_seed = 8; });
  changed([](Geometry& g) { g.files[0].path = "x"; });
  changed([](Geometry& g) { g.files[0].bytes = 1; });
  changed([](Geometry& g) { g.files[0].records = 1; });
  changed([](Geometry& g) { g.files[0].packing = Packing::kGzip; });
  changed([](Geometry& g) { g.files.pop_back(); });
  changed([](Geometry& g) { g.blocks[1].begin = 201; });
  changed([](Geometry& g) { g.blocks[1].end = 201; });
  changed([](Geometry& g) { g.blocks[1].first_record = 1; });
  changed([](Geometry& g) { g.blocks[1].records = 1; });
  changed([](Geometry& g) { g.blocks[1].file = 1; });
  changed([](Geometry& g) { g.blocks.pop_back(); });
}

TEST(Geometry, EveryChangedByteIsRefusedOrHarmless) {
  const Geometry g = sample();
  const std::string text = g.to_json();
  int refused = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'0', '9', '"', ' ', 'x'}) {
      std::string broken = text;
      broken[i] = c;
      const auto back = Geometry::from_json(broken);
      if (back.is_ok()) {
        ASSERT_EQ(back.value().hash(), g.hash()) << broken;
      } else {
        EXPECT_EQ(back.status().code(), Code::kCorrupt);
        ++refused;
      }
    }
    EXPECT_FALSE(i + 2 < text.size() && Geometry::from_json(text.substr(0, i)).is_ok());
  }
  EXPECT_GT(refused, static_cast<int>(text.size()) * 4);
}

TEST(Geometry, RefusesForeignJson) {
  for (const char* text : {"", "[]", "{}", "{\"version\":1}", "{\"version\":\"1\"}", "null"})
    EXPECT_EQ(Geometry::from_json(text).status().code(), Code::kCorrupt) << text;
  const auto newer = Geometry::from_json("{\"version\":2}");
  EXPECT_NE(newer.status().message().find("version 2, this program reads 1"), std::string::npos);
}

TEST(Geometry, DifferencesAreWordedForPeople) {
  Geometry now = sample();
  now.batch_size = 500;
  now.files[0].bytes = 512;
  now.files[1].path = "data/c.tsv";
  const std::vector<std::string> want = {"batch_size 500, was 10",
                                         "data/a \"1\".tsv: 512 bytes, was 500",
                                         "file 2 is data/c.tsv, was data/b.tsv.gz"};
  EXPECT_EQ(geometry_differences(sample(), now), want);
}

TEST(BlockOrder, IsASeededPermutation) {
  Geometry g = sample();
  std::vector<uint32_t> identity(20);
  std::iota(identity.begin(), identity.end(), 0);
  const auto a = block_order(g, 0, 0);
  EXPECT_NE(a, identity);
  EXPECT_TRUE(std::is_permutation(a.begin(), a.end(), identity.begin(), identity.end()));
  EXPECT_EQ(a, block_order(g, 0, 0));
  EXPECT_NE(a, block_order(g, 0, 1));
  EXPECT_NE(a, block_order(g, 1, 0));
  g.shuffle_seed = 8;
  EXPECT_NE(a, block_order(g, 0, 0));
  g.shuffle_seed = 0;
  EXPECT_EQ(block_order(g, 0, 5), identity);
}

}  // namespace
}  // namespace flux
