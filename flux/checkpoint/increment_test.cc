// Increment files: round trips, golden bytes, every truncation and flipped bit, and chains of them
// against the shard as plain maps.
#include <algorithm>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>

#include "flux/checkpoint/increment_file.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/test_increments.h"

namespace flux {
namespace {

using test::expect_golden;
using test::PlainShard;

ShardIncrement small_increment() {
  ShardIncrement increment;
  increment.shards = 16;
  increment.replica = ShardReplica(3, test::kLife, {5, 6});
  EXPECT_TRUE(increment.replica.open_pass(0, test::kGeometry).is_ok());
  increment.base_op = increment.replica.op();
  increment.base_stream_hash = increment.replica.stream_hash();
  increment.replica.commit({test::kLife, test::kGeometry, {{{0, 0, 2, 7}, 1, 3}}, {}}, 99);
  increment.tables.push_back({"embedding",
                              20,
                              9,
                              2,
                              test::make_row(1, "abc") + test::make_row(~0ULL, "defghi"),
                              {77, 0x1020304050607080}});
  increment.tables.push_back({"empty", 12, 0, 0, "", {}});
  return increment;
}

void expect_equal(const ShardIncrement& a, const ShardIncrement& b) {
  EXPECT_EQ(a.shards, b.shards);
  EXPECT_EQ(a.base_op, b.base_op);
  EXPECT_EQ(a.base_stream_hash, b.base_stream_hash);
  test::expect_same_replica(a.replica, b.replica);
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (size_t t = 0; t < a.tables.size(); ++t) {
    EXPECT_EQ(a.tables[t].name, b.tables[t].name);
    EXPECT_EQ(a.tables[t].row_bytes, b.tables[t].row_bytes);
    EXPECT_EQ(a.tables[t].rows_after, b.tables[t].rows_after);
    EXPECT_EQ(a.tables[t].rows, b.tables[t].rows);
    EXPECT_EQ(a.tables[t].bytes, b.tables[t].bytes);
    EXPECT_EQ(a.tables[t].removed, b.tables[t].removed);
  }
}

TEST(IncrementFile, GoldenBytes) {
  const std::string bytes = encode_increment(small_increment());
  expect_golden("changes_v1.bin", bytes);
  const auto back = decode_increment("golden", bytes);
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  expect_equal(back.value(), small_increment());
  EXPECT_TRUE(is_increment(bytes));
}

TEST(IncrementFile, ManyChunks) {
  ShardIncrement increment = small_increment();
  TableChanges& table = increment.tables[0];
  table.rows = 200000;  // of 20 bytes: four chunks
  table.bytes.clear();
  for (Key key = 0; key < table.rows; ++key) table.bytes += test::make_row(mix64(key), "x");
  for (Key key = 0; key < 300000; ++key) table.removed.push_back(mix64(key + (1ULL << 40)));
  const auto back = decode_increment("x", encode_increment(increment));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  expect_equal(back.value(), increment);
}

TEST(IncrementFile, EveryTruncationIsNoticed) {
  const std::string bytes = encode_increment(small_increment());
  test::expect_truncations_noticed(bytes, decode_increment);
  EXPECT_FALSE(decode_increment("x", encode_shard(PlainShard(1, 1).image())).is_ok());
  EXPECT_FALSE(decode_shard("x", bytes).is_ok());
}

// The message names the file and the offset of the chunk (or the magic) that the bit lies in.
TEST(IncrementFile, EveryFlippedBitIsNoticedWithItsOffset) {
  const std::string bytes = encode_increment(small_increment());
  std::vector<size_t> starts = {0};
  for (size_t at = std::string("flux changes 1\n").size(); at < bytes.size();) {
    starts.push_back(at);
    uint32_t size;
    std::memcpy(&size, bytes.data() + at, sizeof size);
    at += 4 + size + 8;
  }
  ASSERT_EQ(starts.size(), 5U) << "magic, header, state, removed keys, rows";
  test::expect_flips_noticed(bytes, decode_increment, [&](size_t at, const Status& status) {
    const size_t start = *std::prev(std::upper_bound(starts.begin(), starts.end(), at));
    EXPECT_EQ(status.message().find(fmt::format("a/b:{}: ", start)), 0U)
        << "byte " << at << ": " << status.message();
  });
}

TEST(ChainMerger, AnyChainGivesTheShard) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    PlainShard shard(3, seed);
    for (size_t i = random.below(3); i > 0; --i) shard.change(random.below(80), false);
    ChainMerger merger(decode_shard("x", encode_shard(shard.image())).value());
    shard.mark();
    for (size_t link = random.below(9); link > 0; --link) {
      for (size_t i = random.below(4); i > 0; --i) shard.change(random.below(40), seed % 2 == 0);
      const auto increment = decode_increment("x", encode_increment(shard.increment()));
      ASSERT_TRUE(increment.is_ok());
      const Status added = merger.add("x", increment.value());
      ASSERT_TRUE(added.is_ok()) << "seed " << seed << ": " << added.message();
      shard.mark();
    }
    test::expect_same_shard(merger.finish(), shard.image());
  }
}

TEST(ChainMerger, ABreakIsNoticed) {
  PlainShard shard(3, 7);
  shard.change(30, false);
  const ShardImage whole = shard.image();
  shard.mark();
  shard.change(10, false);
  const ShardIncrement first = shard.increment();
  shard.mark();
  shard.change(10, true);
  const ShardIncrement second = shard.increment();
  const auto outcome = [&](std::vector<ShardIncrement> chain) {
    ChainMerger merger(whole);
    Status status;
    for (const ShardIncrement& increment : chain)
      if (status.is_ok()) status = merger.add("some/file", increment);
    EXPECT_TRUE(status.is_ok() || status.message().find("some/file: ") == 0) << status.message();
    return status;
  };
  const auto changed = [&](const std::function<void(ShardIncrement*)>& change) {
    ShardIncrement bad = first;
    change(&bad);
    return outcome({bad});
  };
  EXPECT_TRUE(outcome({first, second}).is_ok());
  const Status skipped = outcome({second});
  EXPECT_EQ(skipped.code(), Code::kCorrupt);
  EXPECT_NE(skipped.message().find("does not continue the file before it"), std::string::npos);
  EXPECT_FALSE(outcome({first, first}).is_ok());
  EXPECT_FALSE(outcome({second, first}).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) { i->base_op += 1; }).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) { i->base_stream_hash ^= 1; }).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) { i->shards = 8; }).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) { i->tables.pop_back(); }).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) { i->tables[0].name = "other"; }).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) { i->tables[0].row_bytes = 40; }).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) { i->tables[1].rows_after += 1; }).is_ok());
  EXPECT_FALSE(changed([](ShardIncrement* i) {
                 i->tables[0].removed.push_back(1ULL << 50);
                 i->tables[0].rows_after -= 1;
               }).is_ok());
}

Manifest chained_manifest() {
  Manifest m;
  m.number = 12;
  m.job = "j";
  m.shards = {{{"shard-00000.changes", 100, 0xaa},
               9,
               0xbb,
               4,
               {{9, {"shard-00000", 1000, 0xcc}, 5, 0xdd},
                {11, {"shard-00000.changes", 50, 0xee}, 7, 0xff}}},
              {{"shard-00001", 7, 1}, 2, 3, 4}};
  return m;
}

TEST(ChainManifest, GoldenText) {
  const std::string text = encode_manifest(chained_manifest());
  expect_golden("manifest_v2.json", text);
  const auto back = decode_manifest("golden", text);
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(back.value().shards[0].chain, chained_manifest().shards[0].chain);
  EXPECT_TRUE(back.value().shards[1].chain.empty());
}

TEST(ChainManifest, EveryFlippedBitIsNoticed) {
  test::expect_flips_noticed(encode_manifest(chained_manifest()), decode_manifest);
}

TEST(ChainManifest, ImpossibleChainsAreRefused) {
  const auto refused = [](const std::function<void(ShardEntry*)>& change) {
    Manifest m = chained_manifest();
    change(&m.shards[0]);
    return !decode_manifest("x", encode_manifest(m)).is_ok();
  };
  EXPECT_FALSE(refused([](ShardEntry*) {}));
  EXPECT_TRUE(refused([](ShardEntry* e) { e->chain[1].number = 12; })) << "its own folder";
  EXPECT_TRUE(refused([](ShardEntry* e) { e->chain[1].number = 13; })) << "a newer folder";
  EXPECT_TRUE(refused([](ShardEntry* e) { e->chain[1].number = 9; })) << "one folder twice";
  EXPECT_TRUE(refused([](ShardEntry* e) { e->chain[0].number = 0; }));
  EXPECT_TRUE(refused([](ShardEntry* e) { e->chain[0].op = 8; })) << "operations fall";
  EXPECT_TRUE(refused([](ShardEntry* e) { e->op = 6; }));
  EXPECT_TRUE(refused([](ShardEntry* e) { e->chain[1].file.name = "../x"; }));
  Manifest m = chained_manifest();
  m.number = 1000;
  m.shards[0].chain.clear();
  for (uint64_t i = 1; i <= kChainMax; ++i) m.shards[0].chain.push_back({i, {"f", 1, 1}, 1, 1});
  EXPECT_TRUE(decode_manifest("x", encode_manifest(m)).is_ok());
  m.shards[0].chain.push_back({999, {"f", 1, 1}, 1, 1});
  EXPECT_FALSE(decode_manifest("x", encode_manifest(m)).is_ok()) << "too long";
}

}  // namespace
}  // namespace flux
