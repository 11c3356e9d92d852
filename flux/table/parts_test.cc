// The parts of a shard by themselves: row layout, arena, slab, index.
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/base/random.h"
#include "flux/table/key_index.h"
#include "flux/table/row_arena.h"
#include "flux/table/row_layout.h"
#include "flux/table/row_slab.h"

namespace flux {
namespace {

TEST(RowLayout, CommonRowsTouchFewLines) {
  const RowLayout lr_sgd = make_row_layout(1);
  EXPECT_EQ(lr_sgd.bytes_per_row(), 16.0);
  EXPECT_EQ(lr_sgd.lines(lr_sgd.bytes), 1.0);
  const RowLayout lr_adagrad = make_row_layout(2);
  EXPECT_EQ(lr_adagrad.group_rows, 3U);
  EXPECT_EQ(lr_adagrad.lines(lr_adagrad.bytes), 1.0);
  const RowLayout dnn = make_row_layout(20);  // dim 10, adagrad
  EXPECT_EQ(dnn.bytes_per_row(), 96.0);
  EXPECT_EQ(dnn.lines(dnn.bytes), 2.0);
}

TEST(RowLayout, RowsNeverOverlap) {
  for (size_t floats = 1; floats <= 100; ++floats) {
    const RowLayout layout = make_row_layout(floats);
    EXPECT_LE(layout.bytes_per_row(), static_cast<double>(layout.bytes + 4));
    uint32_t number = 0;
    size_t end = 0;
    for (size_t i = 0; i < 100; ++i, number = layout.next(number)) {
      EXPECT_GE(layout.offset(number), end);
      EXPECT_LT(number, layout.numbers(i + 1));
      EXPECT_EQ(layout.ordinal(number), i);
      EXPECT_EQ(layout.number(static_cast<uint32_t>(i)), number);
      end = layout.offset(number) + layout.bytes;
    }
  }
}

TEST(RowArena, PiecesAreDisjointAndComeBack) {
  RowArena arena;
  Random random(1);
  std::map<char*, std::pair<size_t, int>> pieces;
  size_t held = 0;
  for (int i = 0; i < 3000; ++i) {
    if (pieces.empty() || random.chance(0.55)) {
      const size_t bytes = 64 * (1 + random.below(random.chance(0.02) ? 50000 : 200));
      char* piece = arena.allocate(bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(piece) % 64, 0U);
      std::memset(piece, i & 0xff, bytes);
      const auto next = pieces.lower_bound(piece);
      if (next != pieces.end()) {
        ASSERT_LE(piece + bytes, next->first);
      }
      if (next != pieces.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second.first, piece);
      }
      pieces[piece] = {bytes, i & 0xff};
      held += bytes;
    } else {
      auto it = std::next(pieces.begin(), static_cast<long>(random.below(pieces.size())));
      ASSERT_EQ(static_cast<unsigned char>(it->first[it->second.first - 1]), it->second.second);
      arena.release(it->first, it->second.first);
      held -= it->second.first;
      pieces.erase(it);
    }
    ASSERT_EQ(arena.block_bytes() - arena.free_bytes(), held);
  }
  for (const auto& [piece, what] : pieces) arena.release(piece, what.first);
  EXPECT_EQ(arena.free_bytes(), arena.block_bytes());
}

TEST(RowSlab, RowsKeepTheirPlaceAndOrder) {
  for (const size_t floats : {1U, 2U, 5U, 20U}) {
    auto arena = std::make_shared<RowArena>();
    RowSlab slab(make_row_layout(floats), arena);
    std::vector<char*> rows;
    for (uint64_t i = 0; i < 50000; ++i) {
      const uint32_t number = slab.append();
      char* row = slab.row(number);
      std::memset(row, 0xee, slab.layout().bytes);
      std::memcpy(row, &i, sizeof i);
      rows.push_back(row);
    }
    uint64_t expected = 0;
    slab.for_each([&](uint32_t, const char* row) {
      ASSERT_EQ(row, rows[expected]);
      uint64_t value;
      std::memcpy(&value, row, sizeof value);
      ASSERT_EQ(value, expected++);
    });
    EXPECT_EQ(expected, 50000U);
    EXPECT_LE(static_cast<double>(slab.memory_bytes()),
              50000 * slab.layout().bytes_per_row() * (1 + 1.0 / 32));
  }
}

TEST(KeyIndex, FindsWhatWasInsertedAtFullLoad) {
  RowArena arena;
  for (const size_t rows : {1U, 25U, 1000U, 100000U}) {
    KeyIndex index(&arena);
    index.resize(KeyIndex::lines_for(rows), rows);
    ASSERT_GE(index.capacity(), rows);
    for (uint32_t i = 0; i < rows; ++i) index.insert(mix64(i), i);
    for (uint32_t i = 0; i < rows; ++i) {
      ASSERT_EQ(index.find(mix64(i), [&](uint32_t n) { return n == i; }), i);
    }
    size_t candidates = 0;
    for (uint64_t i = rows; i < 2 * rows; ++i) {
      const auto none = [&](uint32_t) { return ++candidates == 0; };
      ASSERT_EQ(index.find(mix64(i), none), KeyIndex::kNone);
    }
    EXPECT_LT(static_cast<double>(candidates), 0.01 * static_cast<double>(rows) + 2);
  }
}

// Keys of one line and one fingerprint: chains over several lines, all told apart by the caller.
TEST(KeyIndex, EqualHashesOverflowIntoTheNextLines) {
  RowArena arena;
  KeyIndex index(&arena);
  index.resize(8, 100);
  for (uint32_t i = 0; i < 100; ++i) index.insert(0xffffffffU, i);  // starts in the last line
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_EQ(index.find(0xffffffffU, [&](uint32_t n) { return n == i; }), i);
  }
  EXPECT_EQ(index.lines_read(0xffffffffU, 0), 1U);
  EXPECT_EQ(index.lines_read(0xffffffffU, 99), 7U);
}

}  // namespace
}  // namespace flux
