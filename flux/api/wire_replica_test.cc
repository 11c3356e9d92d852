// Forwarded operations as bytes: with rows they arrive in place as those of a push do, without rows
// they are short; every kind of damage is refused and named.
#include "flux/api/wire_replica.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "flux/api/messages.pb.h"
#include "flux/api/test_batch_data.h"
#include "flux/api/wire_message.h"
#include "flux/base/half.h"

namespace flux {
namespace {

using namespace test;

struct Forward {
  std::vector<ShardId> shards;
  BatchData data;
  std::vector<uint64_t> ops, hashes;
  ReplicateRequest request;
  Buffer<uint16_t> halves;

  explicit Forward(std::vector<ShardId> of) : shards(std::move(of)), data(5, 200, shards) {
    for (const ShardId shard : shards) {
      ops.push_back(1000 + shard);
      hashes.push_back(~0ULL - shard);
    }
    request.push = data.push;
    request.ops = ops;
    request.from = 6;
    request.content = 77;
    request.hashes = hashes;
  }
  Result<WireRequest> encode() { return encode_replicate(request, kShape, &halves); }
};

TEST(WireReplica, RowsArriveInPlaceAsThoseOfAPush) {
  Forward sent({1, 2, 5, 9});
  sent.data.epochs[2] = {3, 4};
  sent.request.push.lr_scale = 0.7F;
  const auto encoded = sent.encode();
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().message();
  // The same spans of the sender's arrays as a push of these shards.
  const auto push = encode_push(sent.data.push, kShape, WireValue::kFp32, &sent.halves);
  ASSERT_EQ(encoded.value().payload.size(), push.value().payload.size());
  for (size_t i = 0; i < push.value().payload.size(); ++i) {
    EXPECT_EQ(encoded.value().payload[i].data(), push.value().payload[i].data());
    EXPECT_EQ(encoded.value().payload[i].size(), push.value().payload[i].size());
  }
  const Buffer<std::byte> payload = gathered(encoded.value().payload);
  WireReplicate got;
  const Status status =
      decode_replicate(encoded.value().control, payload.span(), shape_of_life, &got);
  ASSERT_TRUE(status.is_ok()) << status.message();
  const ReplicateRequest& r = got.request;
  EXPECT_EQ(r.kind, OpKind::kPush);
  EXPECT_EQ(std::vector<uint64_t>(r.ops.begin(), r.ops.end()), sent.ops);
  EXPECT_EQ(r.from, 6U);
  EXPECT_EQ(r.content, 77U);
  EXPECT_EQ(std::vector<uint64_t>(r.hashes.begin(), r.hashes.end()), sent.hashes);
  EXPECT_EQ(std::vector<ShardId>(r.push.shards.begin(), r.push.shards.end()), sent.shards);
  EXPECT_EQ(r.push.epochs[2], (ShardEpoch{3, 4}));
  EXPECT_EQ(r.push.claim.ids, sent.data.push.claim.ids);
  EXPECT_EQ(r.push.claim.geometry, 77U);
  EXPECT_EQ(r.push.examples, 100U);
  EXPECT_EQ(r.push.lr_scale, 0.7F);
  EXPECT_FALSE(r.push.as_bf16 || r.push.as_fp16);
  EXPECT_TRUE(lies_in(r.push.keys.keys, payload) && lies_in(r.push.tables[0], payload));
  for (const ShardId shard : {1U, 2U, 5U}) {
    const uint32_t n = sent.data.begin[shard + 1] - sent.data.begin[shard];
    const uint32_t here = r.push.keys.begin[shard], there = sent.data.begin[shard];
    ASSERT_EQ(r.push.keys.begin[shard + 1] - here, n);
    EXPECT_EQ(0, std::memcmp(r.push.keys.keys + here, &sent.data.keys[there], n * 8));
    EXPECT_EQ(0, std::memcmp(r.push.counts + here, &sent.data.counts[there], n * 4));
    EXPECT_EQ(0, std::memcmp(r.push.tables[0] + here * 4, &sent.data.wide[there * 4], n * 16));
    EXPECT_EQ(0, std::memcmp(r.push.tables[1] + here, &sent.data.narrow[there], n * 4));
  }
  EXPECT_EQ(0, std::memcmp(r.push.dense_parts[1], &sent.data.dense[kShape.dense_begin(1)],
                           kShape.dense_size(1) * 4));
  EXPECT_EQ(r.push.dense_parts[0], nullptr);
}

// What a primary made of 16 bits travels as 16 bits, and the backup has the same floats.
TEST(WireReplica, HalvesLoseNothing) {
  for (const bool bf16 : {true, false}) {
    Forward sent(every_shard());
    std::vector<uint16_t> packed;
    for (std::vector<float>* floats : {&sent.data.wide, &sent.data.narrow, &sent.data.dense}) {
      packed.resize(floats->size());
      (bf16 ? floats_to_bf16 : floats_to_fp16)(floats->data(), packed.data(), packed.size());
      (bf16 ? bf16_to_floats : fp16_to_floats)(packed.data(), floats->data(), packed.size());
    }
    const uint64_t full = gathered(sent.encode().value().payload).size();
    (bf16 ? sent.request.push.as_bf16 : sent.request.push.as_fp16) = true;
    const auto encoded = sent.encode();
    const Buffer<std::byte> payload = gathered(encoded.value().payload);
    EXPECT_LT(payload.size(), full * 3 / 4);
    WireReplicate got;
    ASSERT_TRUE(
        decode_replicate(encoded.value().control, payload.span(), shape_of_life, &got).is_ok());
    EXPECT_EQ(got.request.push.as_bf16, bf16);
    EXPECT_EQ(got.request.push.as_fp16, !bf16);
    EXPECT_EQ(0, std::memcmp(got.request.push.tables[0], sent.data.wide.data(),
                             sent.data.wide.size() * 4));
    EXPECT_EQ(0, std::memcmp(got.request.push.tables[1], sent.data.narrow.data(),
                             sent.data.narrow.size() * 4));
    EXPECT_EQ(0, std::memcmp(got.request.push.dense_parts[2],
                             &sent.data.dense[kShape.dense_begin(2)], kShape.dense_size(2) * 4));
  }
}

TEST(WireReplica, OperationsWithoutRows) {
  Forward sent({0, 3, 10});
  sent.request.push = {};
  sent.request.push.claim.incarnation = kLife;
  sent.request.push.shards = sent.shards;
  sent.request.push.epochs = sent.data.epochs;
  WireReplicate got;  // used again for each
  for (const OpKind kind : {OpKind::kOpenPass, OpKind::kClosePass, OpKind::kProbe, OpKind::kPush}) {
    sent.request.kind = kind;
    sent.request.pass = kind == OpKind::kPush ? 0 : 6;
    sent.request.geometry = kind == OpKind::kOpenPass ? ~3ULL : 0;
    if (kind == OpKind::kPush)
      sent.request.push.claim = {kLife, 77, {{{0, 0, 0, 3}, 1, 4}}, Verdict::kSkipped};
    const auto encoded = sent.encode();
    ASSERT_TRUE(encoded.is_ok()) << encoded.status().message();
    EXPECT_TRUE(encoded.value().payload.empty());
    ASSERT_TRUE(decode_replicate(encoded.value().control, {}, shape_of_life, &got).is_ok());
    EXPECT_EQ(got.request.kind, kind);
    EXPECT_EQ(got.request.pass, sent.request.pass);
    EXPECT_EQ(got.request.geometry, sent.request.geometry);
    EXPECT_EQ(got.request.push.claim.incarnation, kLife);
    EXPECT_EQ(got.request.push.claim.verdict, sent.request.push.claim.verdict);
    EXPECT_EQ(got.request.push.claim.ids, sent.request.push.claim.ids);
    EXPECT_EQ(got.request.push.shards.size(), 3U);
    EXPECT_EQ(got.request.push.epochs.size(), 3U);
    EXPECT_EQ(got.request.ops[2], 1010U);
    EXPECT_EQ(got.request.push.keys.limit, 0U);
    EXPECT_EQ(got.request.push.keys.begin[kShards], 0U);
    EXPECT_TRUE(got.request.push.tables.empty() && got.request.push.dense_parts.empty());
    // Bytes where none belong.
    alignas(64) const std::byte extra[64] = {};
    EXPECT_EQ(decode_replicate(encoded.value().control, extra, shape_of_life, &got).code(),
              Code::kInvalid);
  }
}

TEST(WireReplica, ForwardsAreRefusedWithWhatIsWrong) {
  Forward sent({0, 3, 10});
  const auto encoded = sent.encode();
  wire::Replicate good;
  ASSERT_TRUE(good.ParseFromString(encoded.value().control));
  const Buffer<std::byte> payload = gathered(encoded.value().payload);
  const auto says = [&](auto bend, const std::string& text, Code code = Code::kInvalid) {
    wire::Replicate bent = good;
    bend(&bent);
    WireReplicate out;
    const Status status =
        decode_replicate(bent.SerializeAsString(), payload.span(), shape_of_life, &out);
    EXPECT_EQ(status.code(), code) << text;
    EXPECT_NE(status.message().find(text), std::string::npos) << status.message();
  };
  says([](auto* m) { m->set_kind(0); }, "operation 0");
  says([](auto* m) { m->set_kind(kOpKinds + 1); }, "operation 6");
  says([](auto* m) { m->mutable_push()->set_verdict(4); }, "replicate: verdict 4");
  for (const float scale : {-1.0F, 2e6F, std::numeric_limits<float>::quiet_NaN()})
    says([scale](auto* m) { m->mutable_push()->set_lr_scale(scale); }, "scaled by");
  says([](auto* m) { m->mutable_push()->set_verdict(1); }, "rows with an operation that has none");
  says([](auto* m) { m->set_kind(2); }, "rows with an operation that has none");
  says([](auto* m) { m->mutable_ops()->RemoveLast(); }, "2 ops and 3 hashes for 3 shards");
  says([](auto* m) { m->add_hashes(1); }, "3 ops and 4 hashes");
  says([](auto* m) { m->mutable_push()->set_shards(2, 11); }, "shard 11 at place 2");
  says([](auto* m) { m->mutable_push()->mutable_epochs()->Clear(); }, "replicate: 0 epochs");
  says([](auto* m) { m->mutable_push()->mutable_shape()->set_parameters(1); }, "this job has");
  says([](auto* m) { m->mutable_push()->set_incarnation(1); }, "has no job", Code::kStale);
  says([](auto* m) { m->mutable_push()->set_keys(0, m->push().keys(0) + 1); }, "a payload of");
  says([](auto* m) { m->mutable_push()->set_value(static_cast<wire::Value>(3)); }, "value type 3");
  // Without rows: shards that the model does not have, a pass without a geometry.
  wire::Replicate open;
  open.set_kind(2);
  *open.mutable_push()->mutable_shape() = good.push().shape();
  open.mutable_push()->set_incarnation(kLife);
  WireReplicate out;
  Status status = decode_replicate(open.SerializeAsString(), {}, shape_of_life, &out);
  EXPECT_NE(status.message().find("without a geometry"), std::string::npos) << status.message();
  open.set_geometry(1);
  EXPECT_TRUE(decode_replicate(open.SerializeAsString(), {}, shape_of_life, &out).is_ok());
  open.mutable_push()->add_shards(11);
  status = decode_replicate(open.SerializeAsString(), {}, shape_of_life, &out);
  EXPECT_NE(status.message().find("shard 11; shards are below 11"), std::string::npos)
      << status.message();
  EXPECT_EQ(decode_replicate("\xff", {}, shape_of_life, &out).code(), Code::kCorrupt);
  // The sender's own mistakes.
  sent.request.ops = {};
  EXPECT_EQ(sent.encode().status().code(), Code::kInvalid);
  sent.request.ops = sent.ops;
  sent.request.push.tables = {};
  EXPECT_EQ(sent.encode().status().code(), Code::kInvalid);
}

TEST(WireReplica, Answers) {
  ReplicateReply reply;
  PushReply none;
  ReplicateReply got;
  got.refused.resize(3);
  ASSERT_TRUE(decode_replicate_reply(encode_replicate_reply(reply), &got).is_ok());
  EXPECT_TRUE(got.refused.empty());
  EXPECT_TRUE(encode_replicate_reply(reply).empty()) << "the usual answer is nothing at all";
  reply.refused = {{3, FollowAnswer::kOlderEpoch, {5, 6}},
                   {9, FollowAnswer::kNotFollower, {}},
                   {1, FollowAnswer::kNewerEpoch, {5, 6}}};
  ASSERT_TRUE(decode_replicate_reply(encode_replicate_reply(reply), &got).is_ok());
  ASSERT_EQ(got.refused.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got.refused[i].shard, reply.refused[i].shard);
    EXPECT_EQ(got.refused[i].why, reply.refused[i].why);
    EXPECT_EQ(got.refused[i].epoch, reply.refused[i].epoch);
  }
  wire::ReplicateReply bad;
  bad.add_shards(1);
  EXPECT_EQ(decode_replicate_reply(bad.SerializeAsString(), &got).code(), Code::kInvalid);
  bad.add_why(6);
  EXPECT_EQ(decode_replicate_reply(bad.SerializeAsString(), &got).code(), Code::kInvalid);
  bad.add_epochs();
  EXPECT_EQ(decode_replicate_reply(bad.SerializeAsString(), &got).code(), Code::kInvalid);
  bad.set_why(0, 5);
  EXPECT_TRUE(decode_replicate_reply(bad.SerializeAsString(), &got).is_ok());
}

TEST(WireReplica, PartsOfACopyAndConfirms) {
  const std::vector<std::byte> bytes(100, std::byte{7});
  const InstallRequest sent{kLife, 65543, {3, 4}, ~0ULL, 99, 6, 7, bytes};
  InstallRequest got;
  ASSERT_TRUE(decode_install(encode_install(sent), bytes, &got).is_ok());
  EXPECT_EQ(got.incarnation, kLife);
  EXPECT_EQ(got.shard, 65543U);
  EXPECT_EQ(got.epoch, (ShardEpoch{3, 4}));
  EXPECT_EQ(got.copy, ~0ULL);
  EXPECT_EQ(got.op, 99U);
  EXPECT_EQ(got.part, 6U);
  EXPECT_EQ(got.parts, 7U);
  EXPECT_EQ(got.bytes.data(), bytes.data());
  EXPECT_EQ(got.bytes.size(), 100U);
  for (const auto& [part, parts] : {std::pair{7U, 7U}, {0U, 0U}, {0U, kInstallPartsMax + 1}}) {
    InstallRequest bad = sent;
    bad.part = part;
    bad.parts = parts;
    EXPECT_EQ(decode_install(encode_install(bad), bytes, &got).code(), Code::kInvalid) << parts;
  }
  InstallRequest far = sent;
  far.shard = 65544;
  EXPECT_EQ(decode_install(encode_install(far), bytes, &got).code(), Code::kInvalid);
  EXPECT_EQ(decode_install("\xff", bytes, &got).code(), Code::kCorrupt);
  ConfirmRequest confirm;
  ASSERT_TRUE(decode_message(encode_message(ConfirmRequest{~0ULL, 5}), &confirm).is_ok());
  EXPECT_EQ(confirm.incarnation, ~0ULL);
  EXPECT_EQ(confirm.receipt, 5U);
}

}  // namespace
}  // namespace flux
