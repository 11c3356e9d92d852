#include "flux/table/sparse_shard.h"

#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/table/reference_table.h"
#include "flux/table/row_arena.h"

namespace flux {
namespace {

TableOptions table(const std::string& rule, uint32_t dim) {
  TableOptions options;
  options.dim = dim;
  options.optimizer.rule = rule;
  options.seed = 77;
  return options;
}

// A shard with all that it borrows.
struct Owned {
  explicit Owned(const TableOptions& options)
      : optimizer(std::move(make_optimizer(options.optimizer)).value()),
        arena(make_row_arena(options)),
        shard(options, optimizer.get(), arena) {}
  std::unique_ptr<const Optimizer> optimizer;
  std::shared_ptr<RowArena> arena;
  SparseShard shard;
};

struct Push {
  std::vector<Key> keys;
  std::vector<float> gradients;
  std::vector<uint32_t> counts;
};

// Keys below `universe`, repeated now and then.
Push random_push(Random& random, size_t n, uint64_t universe, size_t dim) {
  Push push;
  for (size_t i = 0; i < n; ++i) {
    const bool again = i > 0 && random.chance(0.05);
    push.keys.push_back(again ? push.keys[random.below(i)] : mix64(random.below(universe)));
    push.counts.push_back(static_cast<uint32_t>(1 + random.below(5)));
  }
  for (size_t i = 0; i < n * dim; ++i) {
    push.gradients.push_back(static_cast<float>(random.normal()));
  }
  return push;
}

void apply(SparseShard& shard, const Push& push) {
  shard.push(push.keys, push.gradients.data(), push.counts.data());
}

std::vector<float> pulled(const SparseShard& shard, const std::vector<Key>& keys, size_t dim) {
  std::vector<float> out(keys.size() * dim + 1, -1.0F);
  shard.pull(keys, out.data());
  EXPECT_EQ(out.back(), -1.0F) << "wrote past the end";
  return out;
}

bool same_bits(const float* a, const float* b, size_t n) {
  return n == 0 || std::memcmp(a, b, n * sizeof(float)) == 0;
}

void expect_equal(const SparseShard& shard, const ReferenceTable& reference, size_t dim) {
  ASSERT_EQ(shard.size(), reference.rows().size());
  EXPECT_EQ(shard.count_sum(), reference.count_sum());
  size_t visited = 0;
  shard.for_each([&](Key key, uint32_t count, const float* weights) {
    ++visited;
    const auto row = reference.rows().find(key);
    ASSERT_NE(row, reference.rows().end());
    EXPECT_EQ(count, row->second.count);
    EXPECT_TRUE(same_bits(weights, row->second.floats.data(), dim));
  });
  EXPECT_EQ(visited, shard.size());
  // The saved form also shows the optimizer's state.
  std::string saved;
  shard.save_rows(&saved);
  const size_t bytes = shard.saved_row_bytes();
  ASSERT_EQ(saved.size(), shard.size() * bytes);
  for (size_t at = 0; at < saved.size(); at += bytes) {
    Key key;
    std::memcpy(&key, saved.data() + at, sizeof key);
    const std::vector<float>& floats = reference.rows().at(key).floats;
    ASSERT_EQ(bytes, 12 + 4 * floats.size());
    ASSERT_EQ(std::memcmp(saved.data() + at + 12, floats.data(), 4 * floats.size()), 0);
  }
}

class SparseShardTest : public testing::TestWithParam<std::tuple<const char*, uint32_t>> {
 protected:
  TableOptions options() const { return table(std::get<0>(GetParam()), std::get<1>(GetParam())); }
};

TEST_P(SparseShardTest, EqualsTheReferenceTableBitForBit) {
  const TableOptions o = options();
  Owned owned(o);
  ReferenceTable reference(o);
  Random random(o.dim);
  const size_t sizes[] = {0, 1, 3, 40, 63, 64, 65, 128, 129, 700};
  for (int op = 0; op < 150; ++op) {
    const size_t n = sizes[random.below(std::size(sizes))];
    const uint64_t universe = random.chance(0.5) ? 200 : 20000;
    const Push push = random_push(random, n, universe, o.dim);
    std::vector<float> expected(n * o.dim);
    reference.pull(push.keys, expected.data());
    const std::vector<float> got = pulled(owned.shard, push.keys, o.dim);
    ASSERT_TRUE(same_bits(got.data(), expected.data(), expected.size())) << "op " << op;
    if (random.chance(0.3)) continue;
    const float scale = random.chance(0.7) ? 1.0F : static_cast<float>(0.1 + 2 * random.uniform());
    owned.shard.push(push.keys, push.gradients.data(), push.counts.data(), scale);
    reference.push(push.keys, push.gradients.data(), push.counts.data(), scale);
    ASSERT_EQ(owned.shard.size(), reference.rows().size());
  }
  ASSERT_GT(owned.shard.size(), 2000U);  // the index has grown many times
  expect_equal(owned.shard, reference, o.dim);
}

TEST_P(SparseShardTest, LoadingASaveGivesTheSameBytes) {
  const TableOptions o = options();
  Owned first(o);
  Random random(o.dim + 1);
  for (int i = 0; i < 5; ++i) apply(first.shard, random_push(random, 300, 5000, o.dim));
  std::string saved;
  first.shard.save_rows(&saved);
  Owned second(o);
  ASSERT_TRUE(second.shard.load_rows(saved, 0, 1).is_ok());
  std::string again;
  second.shard.save_rows(&again);
  EXPECT_EQ(saved, again);
  EXPECT_EQ(first.shard.content_hash(), second.shard.content_hash());
  // Both go on alike.
  const Push push = random_push(random, 300, 5000, o.dim);
  apply(first.shard, push);
  apply(second.shard, push);
  EXPECT_EQ(first.shard.content_hash(), second.shard.content_hash());
  EXPECT_EQ(first.shard.count_sum(), second.shard.count_sum());
}

INSTANTIATE_TEST_SUITE_P(Shapes, SparseShardTest,
                         testing::Combine(testing::Values("sgd", "adagrad", "adam"),
                                          testing::Values(1U, 2U, 3U, 8U, 10U, 16U, 33U)));

TEST(SparseShard, PullOfAnAbsentKeyIsWhatAPushStartsFrom) {
  for (const char* init : {"uniform", "zero"}) {
    TableOptions o = table("sgd", 10);
    o.init = init;
    Owned owned(o);
    const std::vector<Key> keys = {1, 2, ~0ULL, 0};
    const std::vector<float> before = pulled(owned.shard, keys, o.dim);
    EXPECT_EQ(owned.shard.size(), 0U);
    Push push{keys, std::vector<float>(keys.size() * o.dim, 0.0F), {1, 1, 1, 1}};
    apply(owned.shard, push);
    EXPECT_EQ(owned.shard.size(), 4U);
    EXPECT_EQ(before, pulled(owned.shard, keys, o.dim));
    bool all_zero = true;
    for (size_t i = 0; i + 1 < before.size(); ++i) {
      EXPECT_GE(before[i], -o.init_scale);
      EXPECT_LT(before[i], o.init_scale);
      all_zero &= before[i] == 0.0F;
    }
    EXPECT_EQ(all_zero, o.init == "zero");
  }
}

TEST(SparseShard, ContentHashIgnoresOrderButNothingElse) {
  const TableOptions o = table("adagrad", 3);
  Owned a(o);
  Owned b(o);
  Owned c(o);
  Push push{{5, 6}, {1, 2, 3, 4, 5, 6}, {1, 2}};
  Push swapped{{6, 5}, {4, 5, 6, 1, 2, 3}, {2, 1}};
  Push counted{{5, 6}, {1, 2, 3, 4, 5, 6}, {1, 3}};
  apply(a.shard, push);
  apply(b.shard, swapped);
  apply(c.shard, counted);
  EXPECT_EQ(a.shard.content_hash(), b.shard.content_hash());
  EXPECT_NE(a.shard.content_hash(), c.shard.content_hash());
}

TEST(SparseShard, LoadRefusesWhatIsNotASaveOfTheShard) {
  const TableOptions o = table("adagrad", 3);
  const uint32_t shards = 4;
  Push push;
  for (Key key = 0; push.keys.size() < 20; ++key) {
    if (shard_of(key, shards) == 2) push.keys.push_back(key);
  }
  push.gradients.assign(20 * o.dim, 1.0F);
  push.counts.assign(20, 1);
  Owned source(o);
  apply(source.shard, push);
  std::string saved;
  source.shard.save_rows(&saved);
  const size_t bytes = source.shard.saved_row_bytes();

  const auto refused = [&](const std::string& text, const std::string& reason) {
    Owned target(o);
    const Status status = target.shard.load_rows(text, 2, shards);
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_NE(status.message().find(reason), std::string::npos) << status.message();
    EXPECT_EQ(target.shard.size(), 0U);
    EXPECT_TRUE(target.shard.load_rows(saved, 2, shards).is_ok());  // still usable
    EXPECT_EQ(target.shard.content_hash(), source.shard.content_hash());
  };
  refused(saved.substr(0, saved.size() - 1), "not whole rows");
  refused(saved + saved.substr(3 * bytes, bytes), "repeats key");
  Key foreign = 0;
  while (shard_of(foreign, shards) == 2) ++foreign;
  std::string mixed = saved;
  std::memcpy(mixed.data() + 7 * bytes, &foreign, sizeof foreign);
  refused(mixed, "row 7 has key");
}

TEST(SparseShard, ATinyTableOfManyShardsIsSmall) {
  const TableOptions o = table("adagrad", 10);
  auto optimizer = std::move(make_optimizer(o.optimizer)).value();
  auto arena = make_row_arena(o);
  std::vector<SparseShard> shards;
  for (int i = 0; i < 256; ++i) shards.emplace_back(o, optimizer.get(), arena);
  Random random(3);
  for (SparseShard& shard : shards) apply(shard, random_push(random, 5, 1000, o.dim));
  EXPECT_LE(arena->block_bytes(), 4U << 20);
}

TEST(SparseShard, BeyondPayloadAKeyCostsAtMost24Bytes) {
  for (const auto& [rule, dim] : {std::pair{"adagrad", 10U},
                                  {"adagrad", 1U},
                                  {"sgd", 1U},
                                  {"adam", 1U},
                                  {"adagrad", 8U},
                                  {"adagrad", 16U}}) {
    Owned owned(table(rule, dim));
    Random random(9);
    double worst = 0;
    const size_t floats = (owned.shard.saved_row_bytes() - 12) / 4;
    for (int i = 0; i < 120; ++i) {
      apply(owned.shard, random_push(random, 500, 1ULL << 40, dim));
      if (owned.shard.size() < 4000) continue;
      const double each =
          static_cast<double>(owned.shard.memory_bytes()) / static_cast<double>(owned.shard.size());
      worst = std::max(worst, each - 4.0 - 4.0 * static_cast<double>(floats));
    }
    EXPECT_LE(worst, 24.0) << rule << " " << dim;
  }
}

TEST(SparseShard, MemoryReturnsToTheArena) {
  const TableOptions o = table("adagrad", 8);
  auto optimizer = std::move(make_optimizer(o.optimizer)).value();
  auto arena = make_row_arena(o);
  size_t held = 0;
  for (int round = 0; round < 3; ++round) {
    SparseShard shard(o, optimizer.get(), arena);
    Random random(4);
    for (int i = 0; i < 20; ++i) apply(shard, random_push(random, 500, 1ULL << 40, o.dim));
    EXPECT_EQ(arena->block_bytes() - arena->free_bytes(), shard.memory_bytes());
    if (round == 0) held = arena->block_bytes();
    EXPECT_EQ(arena->block_bytes(), held);
  }
  EXPECT_EQ(arena->block_bytes(), arena->free_bytes());
}

TEST(SparseShard, PullsRunConcurrentlyAndBesideIndexHints) {
  const TableOptions o = table("adagrad", 10);
  Owned owned(o);
  Random random(8);
  const Push push = random_push(random, 2000, 1ULL << 40, o.dim);
  apply(owned.shard, push);
  const std::vector<float> expected = pulled(owned.shard, push.keys, o.dim);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] { EXPECT_EQ(pulled(owned.shard, push.keys, o.dim), expected); });
  }
  for (std::thread& thread : threads) thread.join();
  // Hints for the index need no lock: here they race with pushes that make it grow.
  std::thread hints([&] {
    for (int i = 0; i < 50; ++i) owned.shard.prefetch(push.keys);
  });
  for (int i = 0; i < 20; ++i) apply(owned.shard, random_push(random, 500, 1ULL << 40, o.dim));
  hints.join();
  std::vector<float> again(push.keys.size() * o.dim);
  owned.shard.pull(push.keys, again.data());
  EXPECT_GT(owned.shard.size(), 10000U);
}

TEST(SparseShard, ShardsOfATableGrowInParallel) {
  const TableOptions o = table("adagrad", 4);
  auto optimizer = std::move(make_optimizer(o.optimizer)).value();
  auto arena = make_row_arena(o);
  std::vector<uint64_t> hashes(2);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      SparseShard shard(o, optimizer.get(), arena);
      Random random(1);
      for (int i = 0; i < 20; ++i) apply(shard, random_push(random, 300, 1ULL << 40, o.dim));
      hashes[t] = shard.content_hash();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(ShardOf, SpreadsKeysEvenly) {
  for (uint32_t shards : {1U, 3U, 256U}) {
    std::vector<size_t> sizes(shards);
    const size_t keys = 100000;
    for (Key key = 0; key < keys; ++key) {
      ASSERT_LT(shard_of(key, shards), shards);
      ++sizes[shard_of(key, shards)];
    }
    for (size_t size : sizes) {
      EXPECT_NEAR(static_cast<double>(size), static_cast<double>(keys) / shards,
                  6 * std::sqrt(static_cast<double>(keys) / shards) + 1);
    }
  }
}

TEST(TableOptionsTest, RangesAreNamed) {
  TableOptions o;
  EXPECT_TRUE(check_table_options(o).is_ok());
  o.dim = 0;
  EXPECT_EQ(check_table_options(o).message(),
            "table 'embedding': dim is 0; it must be from 1 to 4096");
  o = {};
  o.init = "normal";
  EXPECT_EQ(check_table_options(o).message(),
            "table 'embedding': init 'normal' is not known; choose uniform or zero");
  o = {};
  o.optimizer.lr = -1;
  EXPECT_EQ(check_table_options(o).message(),
            "table 'embedding': optimizer.lr is -1; it must be a number > 0");
  EXPECT_EQ(check_table_options(o).code(), Code::kInvalid);
}

}  // namespace
}  // namespace flux
