// Which rows changed: against a set of numbers, and increments against copies of the whole shard.
#include "flux/table/changed_rows.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/table/sparse_shard.h"

namespace flux {
namespace {

std::set<uint32_t> saving(const ChangedRows& rows) {
  std::set<uint32_t> out;
  uint32_t before = 0;
  size_t word = 0;
  const bool more = rows.visit_saving(&word, SIZE_MAX, [&](uint32_t number) {
    EXPECT_TRUE(out.empty() || number > before) << "in order";
    before = number;
    out.insert(number);
  });
  EXPECT_FALSE(more);
  EXPECT_EQ(out.size(), rows.count_saving());
  return out;
}

TEST(ChangedRows, FollowsASetThroughSavesThatStandOrFail) {
  RowArena arena;
  Random random(5);
  {
    ChangedRows rows(&arena);
    std::set<uint32_t> now, under_way;
    uint32_t numbers = 0;
    size_t stood = 0, failed = 0;
    for (int step = 0; step < 20000; ++step) {
      if (random.chance(0.02)) {
        numbers += static_cast<uint32_t>(random.below(700));
        rows.reserve(numbers);
      }
      if (numbers > 0) {
        const auto number = static_cast<uint32_t>(random.below(numbers));
        rows.set(number);
        now.insert(number);
      }
      if (!rows.saving() && random.chance(0.01)) {
        rows.begin();
        under_way = std::move(now);
        now.clear();
        ASSERT_EQ(saving(rows), under_way);
      } else if (rows.saving() && random.chance(0.02)) {
        ASSERT_EQ(saving(rows), under_way) << "later changes do not belong to it";
        if (random.chance(0.5)) {
          ++stood;
          rows.drop();
        } else {
          ++failed;
          rows.bring_back();
          now.insert(under_way.begin(), under_way.end());
        }
        under_way.clear();
      }
      ASSERT_EQ(rows.count(), now.size());
    }
    EXPECT_GT(stood, 20U);
    EXPECT_GT(failed, 20U);
    EXPECT_EQ(arena.block_bytes() - arena.free_bytes(), rows.memory_bytes());
  }
  EXPECT_EQ(arena.block_bytes(), arena.free_bytes());
}

using Rows = std::map<Key, std::string>;

Rows by_key(const std::string& bytes, size_t row_bytes) {
  Rows rows;
  for (size_t at = 0; at < bytes.size(); at += row_bytes) {
    Key key;
    std::memcpy(&key, bytes.data() + at, sizeof key);
    EXPECT_TRUE(rows.emplace(key, bytes.substr(at, row_bytes)).second) << "a row appears once";
  }
  return rows;
}

// The committed state as a map, brought forward by increments only, is always the live shard.
TEST(SparseShardChanges, IncrementsOnACopyGiveTheShard) {
  for (const uint32_t dim : {1U, 2U, 10U}) {
    TableOptions options;
    options.dim = dim;
    const auto optimizer = std::move(make_optimizer(options.optimizer)).value();
    SparseShard shard(options, optimizer.get(), make_row_arena(options));
    const size_t row_bytes = shard.saved_row_bytes();
    Random random(dim);
    Rows committed;
    size_t most_slices = 0;
    for (int save = 0; save < 60; ++save) {
      const auto push_some = [&](size_t pushes) {
        for (size_t p = 0; p < pushes; ++p) {
          std::vector<Key> keys;
          for (int i = 0; i < 40; ++i) keys.push_back(mix64(random.below(save < 30 ? 300 : 3000)));
          std::vector<float> gradients(keys.size() * dim);
          for (float& g : gradients) g = static_cast<float>(random.normal());
          const std::vector<uint32_t> counts(keys.size(), 1);
          shard.push(keys, gradients.data(), counts.data());
        }
      };
      push_some(random.below(4));
      const size_t changed = shard.changed_rows();
      shard.begin_save();
      const bool all = random.chance(0.3);
      const bool disturbed = random.chance(0.7);
      RowCopy copy;
      size_t slices = 1;
      for (; shard.save_slice(all, 1 + random.below(100), &copy); ++slices)
        if (disturbed) push_some(random.below(3));
      if (disturbed) push_some(random.below(2));
      most_slices = std::max(most_slices, slices);
      if (!disturbed && !all) {
        EXPECT_EQ(copy.bytes.size(), changed * row_bytes);
      }
      shard.finish_slices(&copy);
      std::string whole;
      shard.save_rows(&whole);
      if (all) {
        ASSERT_EQ(copy.bytes, whole) << "also in the same order";
      }
      EXPECT_EQ(shard.changed_rows(), 0U) << "all belongs to the save";
      Rows next = committed;
      for (const auto& [key, row] : by_key(copy.bytes, row_bytes)) next[key] = row;
      ASSERT_EQ(next, by_key(whole, row_bytes)) << "save " << save;
      const bool stands = random.chance(0.6);
      shard.end_save(stands);
      if (stands) {
        EXPECT_EQ(shard.changed_rows(), 0U);
        committed = std::move(next);
      } else {
        EXPECT_GE(shard.changed_rows(), changed);
        if (!disturbed) {
          EXPECT_EQ(shard.changed_rows(), changed);
        }
      }
    }
    EXPECT_GT(shard.size(), 300U);
    EXPECT_GT(most_slices, 5U);
  }
}

TEST(SparseShardChanges, LoadedRowsAreUnchangedUntilPushedTo) {
  TableOptions options;
  const auto optimizer = std::move(make_optimizer(options.optimizer)).value();
  const auto arena = make_row_arena(options);
  SparseShard first(options, optimizer.get(), arena), second(options, optimizer.get(), arena);
  std::vector<Key> keys;
  for (Key key = 0; key < 1000; ++key) keys.push_back(key * 7);
  const std::vector<float> gradients(keys.size() * options.dim, 0.5F);
  const std::vector<uint32_t> counts(keys.size(), 1);
  first.push(keys, gradients.data(), counts.data());
  EXPECT_EQ(first.changed_rows(), keys.size());
  std::string saved;
  first.save_rows(&saved);
  ASSERT_TRUE(second.load_rows(saved, 0, 1).is_ok());
  EXPECT_EQ(second.changed_rows(), 0U);
  const std::vector<Key> some = {keys[3], 12345678, keys[999]};
  second.push(some, gradients.data(), counts.data());
  EXPECT_EQ(second.changed_rows(), 3U);
  std::vector<float> out(keys.size() * options.dim);
  second.pull(keys, out.data());
  EXPECT_EQ(second.changed_rows(), 3U) << "a pull changes nothing";
  second.end_save(true);
  EXPECT_EQ(second.changed_rows(), 3U) << "no save was under way";
}

}  // namespace
}  // namespace flux
