// Pulls and pushes of tables that have rows for some of the keys: only those travel.
#include <numeric>

#include <gtest/gtest.h>

#include "flux/api/test_batch_data.h"
#include "flux/api/wire_data.h"

namespace flux {
namespace {

using namespace test;

// Table 0 (4 floats) has the keys of group 2, table 1 (1 float) all: shards 0..3 and 4..7.
const ModelShape kGroups{kShards, {4, 1}, 40000, 2, {2, 0}};

const ModelShape* groups_of_life(uint64_t incarnation) {
  return incarnation == kLife ? &kGroups : nullptr;
}

// As BatchData lays it out, but table 0 begins with the first key of its shards.
struct Grouped {
  explicit Grouped(const std::vector<ShardId>& to) : shards(to), data(4, 300, shards) {
    first = data.begin[kGroups.table_shards(0).begin];
    tables = {data.wide.data() + size_t{first} * 4, data.narrow.data()};
    data.push.tables = tables;
  }
  std::vector<ShardId> shards;
  BatchData data;
  uint32_t first = 0;
  std::vector<const float*> tables;
};

TEST(WireGroups, APushCarriesTheRowsThatThereAre) {
  for (const std::vector<ShardId>& shards :
       {every_shard(), std::vector<ShardId>{0, 2, 5, 6, 9}, std::vector<ShardId>{1, 3},
        std::vector<ShardId>{4, 7, 8}}) {
    for (const WireValue value : {WireValue::kFp32, WireValue::kBf16}) {
      const Grouped sender(shards);
      Buffer<uint16_t> halves;
      const auto sent = encode_push(sender.data.push, kGroups, value, &halves);
      ASSERT_TRUE(sent.is_ok()) << sent.status().message();
      const Buffer<std::byte> payload = gathered(sent.value().payload);
      WirePush got;
      const Status status = decode_push(sent.value().control, payload.span(), groups_of_life, &got);
      ASSERT_TRUE(status.is_ok()) << status.message();
      const PushRequest& r = got.request;
      const float slack = value == WireValue::kFp32 ? 0 : 0x1p-7F;
      for (const ShardId shard : shards) {
        if (shard >= kShards) continue;
        const uint32_t n = sender.data.begin[shard + 1] - sender.data.begin[shard];
        ASSERT_EQ(r.keys.begin[shard + 1] - r.keys.begin[shard], n);
        for (uint32_t i = 0; i < n; ++i) {
          const uint32_t here = r.keys.begin[shard] + i, there = sender.data.begin[shard] + i;
          ASSERT_EQ(r.keys.keys[here], sender.data.keys[there]);
          const float one = sender.data.narrow[there];
          ASSERT_NEAR(r.tables[1][here], one, slack * std::fabs(one));
          for (uint32_t d = 0; d < 4 && kGroups.table_shards(0).has(shard); ++d) {
            const float x = sender.data.wide[there * 4 + d];
            ASSERT_NEAR(r.tables[0][(here - r.keys.begin[4]) * 4 + d], x, slack * std::fabs(x));
          }
        }
      }
    }
  }
}

TEST(WireGroups, APullIsAnsweredInPlace) {
  const std::vector<ShardId> shards = {1, 2, 4, 5, 7, 8};
  const Grouped sender(shards);
  std::vector<float> wide((sender.data.keys.size() - sender.first) * 4, -1);
  std::vector<float> narrow(sender.data.keys.size(), -1), dense(kGroups.parameters);
  std::vector<float*> tables = {wide.data(), narrow.data()};
  for (const WireValue value : {WireValue::kFp32, WireValue::kFp16}) {
    PullRequest pull{kLife, shards, sender.data.push.keys, tables, dense.data(), {}};
    const auto sent = encode_pull(pull, kGroups, value);
    ASSERT_TRUE(sent.is_ok()) << sent.status().message();
    const Buffer<std::byte> payload = gathered(sent.value().payload);
    WirePull got;
    ASSERT_TRUE(decode_pull(sent.value().control, payload.span(), groups_of_life, &got).is_ok());
    ASSERT_EQ(got.reply_bytes(), pull_reply_bytes(sent.value().part, kGroups, value, true));
    Buffer<std::byte> floats(got.float_bytes()), packed(got.reply_bytes());
    got.write_to(floats.data());
    // Every row says whose it is.
    const ShardedKeys& keys = got.request.keys;
    for (const ShardId shard : shards)
      for (uint32_t i = shard < kShards ? keys.begin[shard] : 0;
           shard < kShards && i < keys.begin[shard + 1]; ++i) {
        got.request.tables[1][i] = static_cast<float>(keys.keys[i] % 1000);
        for (uint32_t d = 0; d < 4 && shard >= 4; ++d)
          got.request.tables[0][(i - keys.begin[4]) * 4 + d] =
              static_cast<float>(keys.keys[i] % 500 + d);
      }
    for (uint32_t d = 0; d < kGroups.dense_shards(); ++d)
      if (got.request.dense_parts[d] != nullptr)
        std::fill_n(got.request.dense_parts[d], kGroups.dense_size(d), 3.0F);
    if (value == WireValue::kFp32) {
      alignas(64) std::byte padding[kSectionAlign];
      size_t at = 0;
      for (const auto& target : pull_reply_targets(sent.value().part, kGroups, pull, padding)) {
        std::memcpy(target.data(), floats.data() + at, target.size());
        at += target.size();
      }
      ASSERT_EQ(at, floats.size());
    } else {
      got.pack(floats.data(), packed.data());
      read_pull_reply(packed.data(), value, sent.value().part, kGroups, pull);
    }
    for (const ShardId shard : {1, 2, 4, 5, 7})
      for (uint32_t i = sender.data.begin[shard]; i < sender.data.begin[shard + 1]; ++i) {
        ASSERT_EQ(narrow[i], static_cast<float>(sender.data.keys[i] % 1000));
        for (uint32_t d = 0; d < 4 && shard >= 4; ++d)
          ASSERT_EQ(wide[(i - sender.first) * 4 + d],
                    static_cast<float>(sender.data.keys[i] % 500 + d));
      }
  }
}

TEST(WireGroups, OtherGroupsAreAnotherModel) {
  const Grouped sender(every_shard());
  Buffer<uint16_t> halves;
  const auto sent = encode_push(sender.data.push, kGroups, WireValue::kFp32, &halves);
  ASSERT_TRUE(sent.is_ok());
  const Buffer<std::byte> payload = gathered(sent.value().payload);
  WirePush got;
  const Status status = decode_push(sent.value().control, payload.span(), shape_of_life, &got);
  EXPECT_EQ(status.message(),
            "push: the sender's model has 8 shards, rows of [4,1] floats in the groups [2,0] of 2, "
            "40000 dense parameters; this job has 8 shards, rows of [4,1] floats, 40000 dense "
            "parameters");
}

}  // namespace
}  // namespace flux
