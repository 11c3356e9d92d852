// For tests of this folder only: the history of one shard whose rows the test writes, with its
// whole image and its increments. Values.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/checkpoint/increment_file.h"
#include "flux/checkpoint/test_files.h"

namespace flux::test {

constexpr uint64_t kLife = 0x1122334455667788;
constexpr uint64_t kGeometry = 0xabcdef;
constexpr uint32_t kRowBytes = 20;

inline std::string make_row(Key key, const std::string& rest) {
  std::string row(reinterpret_cast<const char*>(&key), sizeof key);
  row += rest;
  row.resize(kRowBytes, '.');
  return row;
}

// A shard as plain maps, which changes at random and remembers what changed since a moment.
class PlainShard {
 public:
  PlainShard(ShardId shard, uint64_t seed) : random_(seed), replica_(shard, kLife, {5, 6}) {
    EXPECT_TRUE(replica_.open_pass(0, kGeometry).is_ok());
    base_ = replica_;
  }
  // Some rows of both tables change, appear or, if `removes`, go; one batch is marked.
  void change(size_t rows, bool removes) {
    const BatchId id{{0, 0, 0, batch_ / 4}, static_cast<uint8_t>(batch_ % 4), 4};
    replica_.commit({kLife, kGeometry, {id}, Verdict::kApplied}, random_.next());
    ++batch_;
    for (size_t t = 0; t < 2; ++t)
      for (size_t i = 0; i < rows; ++i) {
        const Key key = random_.below(60 + 40 * t);
        if (removes && random_.chance(0.3)) {
          if (tables_[t].erase(key) > 0) changed_[t].insert_or_assign(key, false);
        } else {
          tables_[t][key] = make_row(key, std::to_string(random_.below(100000)));
          changed_[t].insert_or_assign(key, true);
        }
      }
  }
  ShardImage image() const {
    ShardImage image;
    image.shards = 16;
    image.replica = replica_;
    for (size_t t = 0; t < 2; ++t) {
      TableImage table{kNames[t], kRowBytes, tables_[t].size(), ""};
      for (const auto& [key, row] : tables_[t]) table.bytes += row;
      image.tables.push_back(table);
    }
    return image;
  }
  // What changed since mark().
  ShardIncrement increment() const {
    ShardIncrement increment;
    increment.shards = 16;
    increment.replica = replica_;
    increment.base_op = base_.op();
    increment.base_stream_hash = base_.stream_hash();
    for (size_t t = 0; t < 2; ++t) {
      TableChanges table{kNames[t], kRowBytes, tables_[t].size(), 0, "", {}};
      for (const auto& [key, lives] : changed_[t]) {
        if (!lives) table.removed.push_back(key);
        if (!lives) continue;
        ++table.rows;
        table.bytes += tables_[t].at(key);
      }
      increment.tables.push_back(table);
    }
    return increment;
  }
  void mark() {
    base_ = replica_;
    for (auto& table : changed_) table.clear();
  }
  ShardReplica& replica() { return replica_; }

 private:
  static constexpr const char* kNames[2] = {"embedding", "wide"};
  Random random_;
  ShardReplica replica_, base_;
  uint32_t batch_ = 0;
  std::map<Key, std::string> tables_[2];
  std::map<Key, bool> changed_[2];  // key -> whether it lives
};

// Rows in order of keys, to compare images whose rows are ordered otherwise.
inline std::map<std::string, std::map<Key, std::string>> rows_of(const ShardImage& image) {
  std::map<std::string, std::map<Key, std::string>> out;
  for (const TableImage& table : image.tables) {
    EXPECT_EQ(table.bytes.size(), table.rows * table.row_bytes);
    auto& rows = out[table.name];
    for (size_t at = 0; at < table.bytes.size(); at += table.row_bytes) {
      Key key;
      std::memcpy(&key, table.bytes.data() + at, sizeof key);
      EXPECT_TRUE(rows.emplace(key, table.bytes.substr(at, table.row_bytes)).second);
    }
  }
  return out;
}

inline void expect_same_shard(const ShardImage& a, const ShardImage& b) {
  EXPECT_EQ(a.shards, b.shards);
  expect_same_replica(a.replica, b.replica);
  EXPECT_EQ(rows_of(a), rows_of(b));
}

}  // namespace flux::test
