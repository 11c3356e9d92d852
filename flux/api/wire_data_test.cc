// Pull and push as bytes: layout, in place, golden control parts, halves, everything refused.
#include "flux/api/wire_data.h"

#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "flux/api/messages.pb.h"
#include "flux/api/test_batch_data.h"
#include "flux/base/key.h"
#include "flux/base/random.h"

namespace flux {
namespace {

using namespace test;

class PushOfShards : public testing::TestWithParam<std::vector<ShardId>> {};

TEST_P(PushOfShards, ArrivesInPlaceAndUnchanged) {
  const std::vector<ShardId> shards = GetParam();
  const BatchData data(1, 300, shards);
  Buffer<uint16_t> halves;
  const auto sent = encode_push(data.push, kShape, WireValue::kFp32, &halves);
  ASSERT_TRUE(sent.is_ok()) << sent.status().message();
  // Every span of data lies in the caller's arrays: nothing was copied.
  for (const auto& span : sent.value().payload) {
    const auto* p = span.data();
    const auto in = [&](const auto& v) {
      const auto* b = reinterpret_cast<const std::byte*>(v.data());
      return p >= b && p + span.size() <= b + v.size() * sizeof(v[0]);
    };
    EXPECT_TRUE(in(data.keys) || in(data.counts) || in(data.wide) || in(data.narrow) ||
                in(data.dense) || span.size() < kSectionAlign);
  }
  const Buffer<std::byte> payload = gathered(sent.value().payload);
  WirePush got;
  const Status status = decode_push(sent.value().control, payload.span(), shape_of_life, &got);
  ASSERT_TRUE(status.is_ok()) << status.message();
  const PushRequest& r = got.request;
  EXPECT_EQ(r.claim.incarnation, kLife);
  EXPECT_EQ(r.claim.geometry, 77U);
  EXPECT_EQ(r.claim.ids, data.push.claim.ids);
  EXPECT_EQ(r.claim.verdict, Verdict::kApplied);
  EXPECT_EQ(r.examples, 100U);
  EXPECT_EQ(r.lr_scale, 1);
  EXPECT_EQ(r.step, nullptr);
  EXPECT_EQ(std::vector<ShardId>(r.shards.begin(), r.shards.end()), shards);
  EXPECT_EQ(std::vector<ShardEpoch>(r.epochs.begin(), r.epochs.end()), data.epochs);
  EXPECT_TRUE(lies_in(r.keys.keys, payload));
  EXPECT_TRUE(lies_in(r.counts, payload));
  EXPECT_TRUE(lies_in(r.tables[0], payload));
  EXPECT_TRUE(lies_in(r.tables[1], payload));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(r.tables[1]) % kSectionAlign, 0U);
  EXPECT_EQ(r.keys.limit, got.keys);
  uint64_t keys = 0;
  for (const ShardId shard : shards) {
    if (shard >= kShards) {
      const uint32_t d = shard - kShards;
      ASSERT_TRUE(lies_in(r.dense_parts[d], payload));
      EXPECT_EQ(std::memcmp(r.dense_parts[d], data.dense.data() + kShape.dense_begin(d),
                            kShape.dense_size(d) * sizeof(float)),
                0);
      continue;
    }
    const uint32_t n = data.begin[shard + 1] - data.begin[shard];
    ASSERT_EQ(r.keys.begin[shard + 1] - r.keys.begin[shard], n);
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t here = r.keys.begin[shard] + i, there = data.begin[shard] + i;
      ASSERT_EQ(r.keys.keys[here], data.keys[there]);
      ASSERT_EQ(r.counts[here], data.counts[there]);
      ASSERT_EQ(std::memcmp(r.tables[0] + here * 4, data.wide.data() + there * 4, 16), 0);
      ASSERT_EQ(r.tables[1][here], data.narrow[there]);
    }
    keys += n;
  }
  EXPECT_EQ(got.keys, keys);
}

TEST_P(PushOfShards, HalvesAreWithinTheirBounds) {
  const std::vector<ShardId> shards = GetParam();
  const BatchData data(2, 300, shards);
  for (const WireValue value : {WireValue::kFp16, WireValue::kBf16}) {
    const float relative = value == WireValue::kFp16 ? 0x1p-11F : 0x1p-8F;
    Buffer<uint16_t> halves;
    const auto sent = encode_push(data.push, kShape, value, &halves);
    ASSERT_TRUE(sent.is_ok());
    const Buffer<std::byte> payload = gathered(sent.value().payload);
    WirePush got;
    ASSERT_TRUE(decode_push(sent.value().control, payload.span(), shape_of_life, &got).is_ok());
    const auto close = [&](float a, float b) {
      return std::fabs(a - b) <= std::fabs(b) * relative + 0x1p-25F;
    };
    for (const ShardId shard : shards) {
      if (shard >= kShards) {
        const uint32_t d = shard - kShards;
        for (uint64_t i = 0; i < kShape.dense_size(d); ++i)
          ASSERT_TRUE(close(got.request.dense_parts[d][i], data.dense[kShape.dense_begin(d) + i]));
        continue;
      }
      for (uint32_t i = 0; i < data.begin[shard + 1] - data.begin[shard]; ++i) {
        const uint32_t here = got.request.keys.begin[shard] + i, there = data.begin[shard] + i;
        for (int j = 0; j < 4; ++j)
          ASSERT_TRUE(close(got.request.tables[0][here * 4 + j], data.wide[there * 4 + j]));
        ASSERT_TRUE(close(got.request.tables[1][here], data.narrow[there]));
      }
    }
  }
}

TEST_P(PushOfShards, RowsOfAPullComeToTheirPlaces) {
  const std::vector<ShardId> shards = GetParam();
  const BatchData data(3, 200, shards);
  for (const WireValue value : {WireValue::kFp32, WireValue::kFp16, WireValue::kBf16}) {
    std::vector<float> wide(data.wide.size(), -7), narrow(data.narrow.size(), -7);
    std::vector<float> dense(kShape.parameters, -7);
    std::vector<float*> tables = {wide.data(), narrow.data()};
    PullRequest pull{kLife, shards, data.push.keys, tables, dense.data(), {}};
    const auto sent = encode_pull(pull, kShape, value);
    ASSERT_TRUE(sent.is_ok());
    const Buffer<std::byte> payload = gathered(sent.value().payload);
    WirePull got;
    ASSERT_TRUE(decode_pull(sent.value().control, payload.span(), shape_of_life, &got).is_ok());
    EXPECT_TRUE(lies_in(got.request.keys.keys, payload));
    // A server that answers with small numbers, exact in every type.
    Buffer<std::byte> floats(got.float_bytes()), reply(got.reply_bytes());
    got.write_to(floats.data());
    const auto row_of = [](uint64_t key) { return static_cast<float>(key % 64); };
    for (uint64_t i = 0; i < got.keys; ++i) {
      const float x = row_of(got.request.keys.keys[i]);
      for (int j = 0; j < 4; ++j) got.request.tables[0][i * 4 + j] = x + static_cast<float>(j);
      got.request.tables[1][i] = -x;
    }
    for (const ShardId shard : shards)
      if (shard >= kShards)
        for (uint64_t i = 0; i < kShape.dense_size(shard - kShards); ++i)
          got.request.dense_parts[shard - kShards][i] = static_cast<float>(shard);
    const uint64_t bytes = pull_reply_bytes(sent.value().part, kShape, value, true);
    ASSERT_EQ(bytes, got.reply_bytes());
    if (value == WireValue::kFp32) {
      alignas(64) std::array<std::byte, kSectionAlign> padding{};
      const auto targets = pull_reply_targets(sent.value().part, kShape, pull,
                                              std::span<std::byte, kSectionAlign>(padding));
      const std::byte* from = floats.data();
      for (const auto& target : targets) {
        std::memcpy(target.data(), from, target.size());
        from += target.size();
      }
      EXPECT_EQ(from, floats.data() + floats.size());
    } else {
      got.pack(floats.data(), reply.data());
      read_pull_reply(reply.data(), value, sent.value().part, kShape, pull);
    }
    for (ShardId s = 0; s < kShards; ++s) {
      const bool asked = std::find(shards.begin(), shards.end(), s) != shards.end();
      for (uint32_t i = data.begin[s]; i < data.begin[s + 1]; ++i) {
        const float x = row_of(data.keys[i]);
        ASSERT_EQ(wide[i * 4 + 3], asked ? x + 3 : -7);
        ASSERT_EQ(narrow[i], asked ? -x : -7);
      }
    }
    for (uint32_t d = 0; d < kShape.dense_shards(); ++d) {
      const bool asked = std::find(shards.begin(), shards.end(), kShards + d) != shards.end();
      for (uint64_t i = kShape.dense_begin(d); i < kShape.dense_begin(d + 1); ++i)
        ASSERT_EQ(dense[i], asked ? static_cast<float>(kShards + d) : -7);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, PushOfShards,
                         testing::Values(every_shard(), std::vector<ShardId>{},
                                         std::vector<ShardId>{0, 2, 3, 7, 8, 10},
                                         std::vector<ShardId>{9}, std::vector<ShardId>{1, 5}));

TEST(WireData, AdjacentShardsMakeOneSpan) {
  const BatchData data(4, 300, {});
  const std::vector<ShardId> shards = {1, 2, 3, 6};
  std::vector<float*> tables = {nullptr, nullptr};
  const auto sent =
      encode_pull({kLife, shards, data.push.keys, tables, nullptr, {}}, kShape, WireValue::kFp32);
  ASSERT_TRUE(sent.is_ok());
  const auto& runs = sent.value().part.runs;
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0], (std::pair{data.begin[1], data.begin[4]}));
  EXPECT_EQ(runs[1], (std::pair{data.begin[6], data.begin[7]}));
  // Shards without keys between them do not part them.
  std::vector<uint32_t> begin = {0, 5, 5, 5, 9, 9, 9, 9, 9};
  const std::vector<ShardId> ends = {0, 3};
  const auto joined = encode_pull({kLife, ends, {data.keys.data(), begin.data()}, tables, nullptr},
                                  kShape, WireValue::kFp32);
  ASSERT_TRUE(joined.is_ok());
  EXPECT_EQ(joined.value().part.runs.size(), 1U);
  EXPECT_EQ(joined.value().part.keys, 9U);
}

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

// The bytes of the format itself: a change here breaks every older peer.
TEST(WireData, GoldenControlParts) {
  const ModelShape shape{2, {3}, 0};
  const std::vector<uint64_t> keys = {5, 6, 7};
  const std::vector<uint32_t> begin = {0, 1, 3}, counts = {1, 1, 2};
  const std::vector<ShardId> shards = {0, 1};
  std::vector<float> rows(9);
  std::vector<float*> tables = {rows.data()};
  const auto pull = encode_pull({kLife, shards, {keys.data(), begin.data()}, tables, nullptr},
                                shape, WireValue::kBf16);
  ASSERT_TRUE(pull.is_ok());
  EXPECT_EQ(hex(pull.value().control),
            "098877665544332211"
            "12050802120103"
            "1802"
            "2a020001"
            "32020102");
  const std::vector<const float*> gradients = {rows.data()};
  const std::vector<ShardEpoch> epochs = {{3, 1}, {3, 2}};
  const SyncStep step{9, 1, {{{0, 0, 1, 2}, 3, 4}}, 50};
  PushRequest push;
  push.claim = {kLife, 0x99, {{{0, 0, 1, 2}, 3, 4}}, Verdict::kApplied};
  push.shards = shards;
  push.epochs = epochs;
  push.keys = {keys.data(), begin.data()};
  push.counts = counts.data();
  push.tables = gradients;
  push.examples = 25;
  push.step = &step;
  Buffer<uint16_t> halves;
  const auto sent = encode_push(push, shape, WireValue::kFp32, &halves);
  ASSERT_TRUE(sent.is_ok());
  EXPECT_EQ(hex(sent.value().control),
            "098877665544332211"
            "12050802120103"
            "219900000000000000"
            "2a0a0a041801200210031804"
            "3819"
            "42020001"
            "4a020102"
            "520408031001"
            "520408031002"
            "5a020001"
            "621208091001"
            "1a0a0a041801200210031804"
            "2032");
  // Keys, counts and one table, each padded to 64 bytes.
  EXPECT_EQ(gathered(sent.value().payload).size(), 3 * 64U);
  WirePush got;
  const Buffer<std::byte> payload = gathered(sent.value().payload);
  ASSERT_TRUE(decode_push(
                  sent.value().control, payload.span(), [&](uint64_t) { return &shape; }, &got)
                  .is_ok());
  ASSERT_NE(got.request.step, nullptr);
  EXPECT_EQ(*got.request.step, step);
  EXPECT_EQ(got.request.epochs[1], epochs[1]);
}

TEST(WireData, AgesOfPushes) {
  EXPECT_EQ(encode_pull_mark({}), "");
  AgeMark mark{1, 2};
  ASSERT_TRUE(decode_pull_mark("", &mark).is_ok());
  EXPECT_EQ(mark, AgeMark{});
  ASSERT_TRUE(decode_pull_mark(encode_pull_mark({~0ULL, 16'000}), &mark).is_ok());
  EXPECT_EQ(mark, (AgeMark{~0ULL, 16'000}));
  EXPECT_FALSE(decode_pull_mark("\xff", &mark).is_ok());
  const std::vector<ShardId> shards = every_shard();
  BatchData data(1, 10, shards);
  for (const AgeMark& pulled : {AgeMark{}, AgeMark{7, 0}, AgeMark{~1ULL, ~2ULL}}) {
    data.push.pulled = pulled;
    Buffer<uint16_t> halves;
    const auto sent = encode_push(data.push, kShape, WireValue::kFp32, &halves);
    ASSERT_TRUE(sent.is_ok());
    const Buffer<std::byte> payload = gathered(sent.value().payload);
    WirePush got;
    ASSERT_TRUE(decode_push(sent.value().control, payload.span(), shape_of_life, &got).is_ok());
    EXPECT_EQ(got.request.pulled, pulled);
  }
  for (const std::optional<uint64_t> age : {std::optional<uint64_t>(), {0}, {31'000}}) {
    PushReply reply, got;
    reply.age = age;
    got.age = 5;
    ASSERT_TRUE(decode_push_reply(encode_push_reply(reply), &got).is_ok());
    EXPECT_EQ(got.age, age);
  }
}

TEST(WireData, PushReplies) {
  PushReply reply;
  for (ShardId s = 0; s < 5; ++s) reply.answers.push_back({s, Answer::kApplied, 100 + s, {}});
  const std::string alike = encode_push_reply(reply);
  reply.answers[2] = {2, Answer::kPartial, 7, {{{0, 0, 0, 1}, 2, 3}, {{0, 0, 0, 1}, 1, 3}}};
  reply.answers[4].answer = Answer::kDuplicate;
  reply.receipt = ~0ULL;
  for (const std::string& bytes : {alike, encode_push_reply(reply)}) {
    PushReply got;
    ASSERT_TRUE(decode_push_reply(bytes, &got).is_ok());
    ASSERT_EQ(got.answers.size(), 5U);
    EXPECT_EQ(got.answers[3].shard, 3U);
    EXPECT_EQ(got.answers[3].op, 103U);
    EXPECT_EQ(got.answers[3].answer, Answer::kApplied);
    EXPECT_EQ(got.answers[2].answer == Answer::kPartial, bytes != alike);
    EXPECT_EQ(got.receipt, bytes == alike ? 0 : ~0ULL);
    EXPECT_EQ(got.answers[2].already.size(), bytes == alike ? 0U : 2U);
  }
  PushReply got;
  EXPECT_TRUE(decode_push_reply(encode_push_reply({}), &got).is_ok());
  EXPECT_TRUE(got.answers.empty());
  wire::PushReply bad;
  bad.add_shards(1);
  EXPECT_EQ(decode_push_reply(bad.SerializeAsString(), &got).code(), Code::kInvalid);
  bad.add_ops(1);
  EXPECT_EQ(decode_push_reply(bad.SerializeAsString(), &got).code(), Code::kInvalid);
  bad.add_answers(kAnswerKinds);
  EXPECT_EQ(decode_push_reply(bad.SerializeAsString(), &got).code(), Code::kInvalid);
  bad.set_answers(0, kAnswerKinds - 1);
  EXPECT_TRUE(decode_push_reply(bad.SerializeAsString(), &got).is_ok());
  bad.add_partial()->set_at(1);
  EXPECT_EQ(decode_push_reply(bad.SerializeAsString(), &got).code(), Code::kInvalid);
}

// Each way to bend a good message, and what is said about it.
class Bent : public testing::Test {
 protected:
  Bent() {
    Buffer<uint16_t> halves;
    const auto push = encode_push(data_.push, kShape, WireValue::kFp32, &halves);
    EXPECT_TRUE(push_.ParseFromString(push.value().control));
    push_payload_ = gathered(push.value().payload);
    std::vector<float*> tables = {nullptr, nullptr};
    const auto pull =
        encode_pull({kLife, shards_, data_.push.keys, tables, nullptr}, kShape, WireValue::kFp32);
    EXPECT_TRUE(pull_.ParseFromString(pull.value().control));
    pull_payload_ = gathered(pull.value().payload);
  }
  template <typename Bend>
  void refuse(Code code, const std::string& says, Bend bend) {
    wire::Push push = push_;
    wire::Pull pull = pull_;
    bend(&push);
    bend(&pull);
    WirePush got_push;
    Status status =
        decode_push(push.SerializeAsString(), push_payload_.span(), shape_of_life, &got_push);
    EXPECT_EQ(status.code(), code) << says;
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
    WirePull got_pull;
    status = decode_pull(pull.SerializeAsString(), pull_payload_.span(), shape_of_life, &got_pull);
    EXPECT_EQ(status.code(), code) << says;
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  }
  void refuse_push(const std::string& says, const std::function<void(wire::Push*)>& bend) {
    wire::Push push = push_;
    bend(&push);
    WirePush got;
    const Status status =
        decode_push(push.SerializeAsString(), push_payload_.span(), shape_of_life, &got);
    EXPECT_EQ(status.code(), Code::kInvalid) << says;
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  }

  const std::vector<ShardId> shards_ = {1, 2, 5, 8, 9};
  const BatchData data_{5, 100, shards_};
  wire::Push push_;
  wire::Pull pull_;
  Buffer<std::byte> push_payload_, pull_payload_;
};

TEST_F(Bent, MessagesAreRefusedWithWhatIsWrong) {
  refuse(Code::kStale, "no job of incarnation", [](auto* m) { m->set_incarnation(1); });
  refuse(Code::kInvalid, "this job has", [](auto* m) { m->mutable_shape()->set_dims(1, 2); });
  refuse(Code::kInvalid, "this job has", [](auto* m) { m->mutable_shape()->add_dims(2); });
  refuse(Code::kInvalid, "this job has", [](auto* m) { m->mutable_shape()->set_parameters(1); });
  refuse(Code::kInvalid, "this job has", [](auto* m) { m->clear_shape(); });
  refuse(Code::kInvalid, "value type 3",
         [](auto* m) { m->set_value(static_cast<wire::Value>(3)); });
  refuse(Code::kInvalid, "value type -1",
         [](auto* m) { m->set_value(static_cast<wire::Value>(-1)); });
  refuse(Code::kInvalid, "shard 11 at place 4", [](auto* m) { m->set_shards(4, 11); });
  refuse(Code::kInvalid, "shard 1 at place 1", [](auto* m) { m->set_shards(1, 1); });
  refuse(Code::kInvalid, "shard 0 at place 1", [](auto* m) { m->set_shards(1, 0); });
  refuse(Code::kInvalid, "4 numbers of keys for 3", [](auto* m) { m->add_keys(0); });
  refuse(Code::kInvalid, "names more", [](auto* m) { m->mutable_keys()->RemoveLast(); });
  refuse(Code::kInvalid, "room for", [](auto* m) { m->set_keys(0, 4000000000U); });
  refuse(Code::kInvalid, "by what its head says", [](auto* m) { m->set_keys(0, 0); });
}

TEST_F(Bent, PushesAreRefusedWithWhatIsWrong) {
  refuse_push("verdict 1", [](wire::Push* m) { m->set_verdict(1); });
  refuse_push("batch 9 of a block of 4", [](wire::Push* m) { m->mutable_ids(0)->set_batch(9); });
  refuse_push("phase 70000",
              [](wire::Push* m) { m->mutable_ids(0)->mutable_block()->set_phase(70000); });
  refuse_push("0 epochs", [](wire::Push* m) { m->clear_epochs(); });
  refuse_push("1 epochs for 5 shards", [](wire::Push* m) { m->add_epoch_of(0); });
  refuse_push("block of 40",
              [](wire::Push* m) { m->mutable_step()->add_ids()->set_batches_in_block(40); });
  refuse_push("by what its head says", [](wire::Push* m) {  // one dense shard less
    m->mutable_shards()->RemoveLast();
  });
  refuse_push("by what its head says", [](wire::Push* m) { m->set_value(wire::BF16); });
}

TEST_F(Bent, PayloadsOfAnotherSizeOrPlaceAreRefused) {
  WirePush push;
  const std::string control = push_.SerializeAsString();
  const auto all = push_payload_.span();
  for (const size_t cut : {size_t{0}, size_t{1}, all.size() - 64, all.size() - 1})
    EXPECT_EQ(decode_push(control, all.first(cut), shape_of_life, &push).code(), Code::kInvalid);
  Buffer<std::byte> moved(all.size() + 1);
  std::memcpy(moved.data() + 1, all.data(), all.size());
  EXPECT_EQ(decode_push(control, moved.span().subspan(1), shape_of_life, &push).code(),
            Code::kInvalid);
  EXPECT_TRUE(decode_push(control, all, shape_of_life, &push).is_ok());
  WirePull pull;
  EXPECT_EQ(decode_pull(pull_.SerializeAsString(), all, shape_of_life, &pull).code(),
            Code::kInvalid);
  EXPECT_EQ(decode_pull("\xff\xff", all, shape_of_life, &pull).code(), Code::kCorrupt);
  EXPECT_EQ(decode_push("\xff\xff", all, shape_of_life, &push).code(), Code::kCorrupt);
}

TEST(WireData, RowsThatAreTooManyAtOnce) {
  const ModelShape huge{1, {4096, 4096}, 0};
  wire::Pull pull;
  pull.set_incarnation(kLife);
  pull.mutable_shape()->set_sparse_shards(1);
  pull.mutable_shape()->add_dims(4096);
  pull.mutable_shape()->add_dims(4096);
  pull.add_shards(0);
  pull.add_keys(40000);
  const Buffer<std::byte> payload(padded(40000 * 8));
  WirePull got;
  const Status status = decode_pull(
      pull.SerializeAsString(), payload.span(), [&](uint64_t) { return &huge; }, &got);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("pull fewer"), std::string::npos);
}

TEST(WireData, CallersMistakesAreRefused) {
  const BatchData data(6, 50, {});
  std::vector<float*> tables = {nullptr, nullptr};
  Buffer<uint16_t> halves;
  for (const std::vector<ShardId>& shards :
       {std::vector<ShardId>{2, 1}, std::vector<ShardId>{3, 3}, std::vector<ShardId>{11}}) {
    EXPECT_EQ(
        encode_pull({kLife, shards, data.push.keys, tables, nullptr}, kShape, WireValue::kFp32)
            .status()
            .code(),
        Code::kInvalid);
  }
  const std::vector<ShardId> one = {1}, dense = {8};
  PushRequest push = data.push;
  push.shards = one;  // and no epoch
  EXPECT_EQ(encode_push(push, kShape, WireValue::kFp32, &halves).status().code(), Code::kInvalid);
  const std::vector<ShardEpoch> epoch = {{1, 1}};
  push.shards = dense;
  push.epochs = epoch;
  push.dense = nullptr;
  EXPECT_EQ(encode_push(push, kShape, WireValue::kFp32, &halves).status().code(), Code::kInvalid);
  tables.pop_back();
  EXPECT_EQ(encode_pull({kLife, one, data.push.keys, tables, nullptr}, kShape, WireValue::kFp32)
                .status()
                .code(),
            Code::kInvalid);
  EXPECT_EQ(parse_wire_value("fp8").status().code(), Code::kInvalid);
  EXPECT_EQ(parse_wire_value("bf16").value(), WireValue::kBf16);
}

}  // namespace
}  // namespace flux
