// Shard files and manifests: round trips, golden bytes, and every truncation and flipped bit.
#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/checkpoint/manifest.h"
#include "flux/checkpoint/shard_file.h"
#include "flux/checkpoint/test_files.h"

namespace flux {
namespace {

using test::expect_golden;
using test::read_golden;

ShardImage small_image() {
  ShardImage image;
  image.shards = 16;
  image.replica = ShardReplica(3, 0x1122334455667788, {5, 6});
  image.replica.close_below(1);
  EXPECT_TRUE(image.replica.open_pass(1, 0xabcdef).is_ok());
  PushClaim claim{0x1122334455667788, 0xabcdef, {{{1, 0, 2, 7}, 1, 3}}, Verdict::kApplied};
  image.replica.commit(claim, 99);
  claim.ids = {{{1, 0, 2, 8}, 0, 1}};
  image.replica.commit(claim, 98);
  claim.ids = {{{1, 0, 2, 9}, 4, 5}};
  claim.verdict = Verdict::kDropped;
  image.replica.commit(claim, 0);
  image.tables.push_back({"embedding", 20, 2,
                          std::string("0123456789abcdefghij", 20) +
                              std::string("ABCDEFGHIJ\0\1\2\3\4\5\6\7\x8\x9", 20)});
  image.tables.push_back({"empty", 12, 0, ""});
  return image;
}

void expect_equal(const ShardImage& a, const ShardImage& b) {
  EXPECT_EQ(a.shards, b.shards);
  test::expect_same_replica(a.replica, b.replica);
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (size_t t = 0; t < a.tables.size(); ++t) {
    EXPECT_EQ(a.tables[t].name, b.tables[t].name);
    EXPECT_EQ(a.tables[t].row_bytes, b.tables[t].row_bytes);
    EXPECT_EQ(a.tables[t].rows, b.tables[t].rows);
    EXPECT_EQ(a.tables[t].bytes, b.tables[t].bytes);
  }
}

TEST(ShardFile, GoldenBytes) {
  expect_golden("shard_v1.bin", encode_shard(small_image()));
  const auto back = decode_shard("golden", read_golden("shard_v1.bin"));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  expect_equal(back.value(), small_image());
}

TEST(ShardFile, ManyChunks) {
  ShardImage image = small_image();
  for (const size_t size : {(1U << 20) - 1, 1U << 20, (1U << 20) + 1, 3U << 20}) {
    image.tables[0].bytes.assign(size, '\0');
    for (size_t i = 0; i < size; ++i) image.tables[0].bytes[i] = static_cast<char>(mix64(i));
    const auto back = decode_shard("x", encode_shard(image));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    expect_equal(back.value(), image);
  }
}

TEST(ShardFile, ChunksCannotChangePlaces) {
  ShardImage image = small_image();
  image.tables.resize(1);
  image.tables[0].bytes = std::string(1U << 20, 'a') + std::string(1U << 20, 'b');
  std::string bytes = encode_shard(image);
  const size_t chunk = (1U << 20) + 12;
  const std::string last = bytes.substr(bytes.size() - chunk);
  const std::string before = bytes.substr(bytes.size() - 2 * chunk, chunk);
  bytes.resize(bytes.size() - 2 * chunk);
  const auto back = decode_shard("x", bytes + last + before);
  ASSERT_FALSE(back.is_ok());
  EXPECT_NE(back.status().message().find("checksum"), std::string::npos);
}

TEST(ShardFile, EveryTruncationIsNoticed) {
  test::expect_truncations_noticed(encode_shard(small_image()), decode_shard);
}

TEST(ShardFile, EveryFlippedBitIsNoticed) {
  test::expect_flips_noticed(encode_shard(small_image()), decode_shard);
}

Manifest small_manifest() {
  Manifest m;
  m.number = 12;
  m.created = "2024-05-06T07:08:09Z";
  m.job = "a \"quoted\" job, \xc3\xa4";
  m.incarnation = 0xfedcba9876543210;
  m.epoch = {2, 3};
  m.model = {{"tables.embedding.dim", "10"}, {"layers", "fc"}};
  m.closed = {{"pass-0", 1000, 2, 0x77, 3}, {"pass-1", 5, 1, 0x78, 0}};
  m.geometry = 0x79;
  m.open_pass = "pass-2";
  m.examples = 17;
  m.shards = {{{"shard-00000", 100, 0xaa}, 9, 0xbb, 4}, {{"shard-00001", 0, ~0ULL}, 0, 0, 0}};
  m.files = {{"geometry.json", 44, 0xcc}};
  return m;
}

TEST(Manifest, GoldenText) {
  const std::string text = encode_manifest(small_manifest());
  expect_golden("manifest_v1.json", text);
  const auto back = decode_manifest("golden", read_golden("manifest_v1.json"));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  const Manifest& m = back.value();
  const Manifest expected = small_manifest();
  EXPECT_EQ(m.number, expected.number);
  EXPECT_EQ(m.created, expected.created);
  EXPECT_EQ(m.job, expected.job);
  EXPECT_EQ(m.incarnation, expected.incarnation);
  EXPECT_EQ(m.epoch, expected.epoch);
  EXPECT_EQ(m.model, expected.model);
  EXPECT_EQ(m.closed, expected.closed);
  EXPECT_EQ(m.geometry, expected.geometry);
  EXPECT_EQ(m.open_pass, expected.open_pass);
  EXPECT_EQ(m.examples, expected.examples);
  ASSERT_EQ(m.shards.size(), 2U);
  EXPECT_EQ(m.shards[1].file.hash, ~0ULL);
  EXPECT_EQ(m.shards[0].stream_hash, 0xbbU);
  EXPECT_EQ(m.shards[0].rows, 4U);
  ASSERT_EQ(m.files.size(), 1U);
  EXPECT_EQ(m.files[0].name, "geometry.json");
}

TEST(Manifest, EveryTruncationIsNoticed) {
  test::expect_truncations_noticed(encode_manifest(small_manifest()), decode_manifest);
}

TEST(Manifest, EveryFlippedBitIsNoticed) {
  test::expect_flips_noticed(encode_manifest(small_manifest()), decode_manifest);
}

TEST(Manifest, NamesStayInsideTheFolder) {
  for (const std::string name : {"../x", "/x", ".hidden", "..", ".", "", "a/b", "a/../../b"}) {
    Manifest file = small_manifest();
    file.files[0].name = name;
    EXPECT_FALSE(decode_manifest("x", encode_manifest(file)).is_ok()) << name;
    Manifest shard = small_manifest();
    shard.shards[1].file.name = name;
    EXPECT_FALSE(decode_manifest("x", encode_manifest(shard)).is_ok()) << name;
  }
}

TEST(Manifest, ModelDifferencesNameTheField) {
  const std::map<std::string, std::string> a = {{"dim", "10"}, {"gone", "x"}, {"same", "1"}};
  const std::map<std::string, std::string> b = {{"dim", "16"}, {"new", "y"}, {"same", "1"}};
  EXPECT_EQ(model_differences(a, b),
            (std::vector<std::string>{"dim: 10 in the checkpoint, 16 in the job",
                                      "gone: x in the checkpoint, absent from the job",
                                      "new: absent from the checkpoint, y in the job"}));
  EXPECT_TRUE(model_differences(a, a).empty());
}

TEST(Manifest, ModelDifferencesNameTheFirstLayer) {
  const std::map<std::string, std::string> a = {
      {"model.000", "h1 = fc(dense) {units=4} -> [B,4] w[4,2]@0"},
      {"model.001", "h2 = fc(h1) {units=1} -> [B,1] w[1,4]@8"},
      {"model.002", "loss = logistic_loss(h2, label) -> [B,1]"}};
  std::map<std::string, std::string> b = a;
  b["model.000"] = "h1 = fc(dense) {units=5} -> [B,5] w[5,2]@0";
  b["model.001"] = "h2 = fc(h1) {units=1} -> [B,1] w[1,5]@10";
  EXPECT_EQ(model_differences(a, b),
            std::vector<std::string>{
                "model: the first layer that differs: h1 = fc(dense) {units=4} -> [B,4] w[4,2] in "
                "the checkpoint, h1 = fc(dense) {units=5} -> [B,5] w[5,2] in the job"});
  b = a;
  b.erase("model.002");
  EXPECT_EQ(model_differences(b, a),
            std::vector<std::string>{
                "model: the first layer that differs: no more layer in the checkpoint, loss = "
                "logistic_loss(h2, label) -> [B,1] in the job"});
}

TEST(Manifest, ModelDifferencesNamePhases) {
  const std::map<std::string, std::string> a = {
      {"phases.0.join.000", "x"}, {"phases.0.join.001", "y"}, {"phases.1.update.000", "z"}};
  const std::map<std::string, std::string> b = {
      {"phases.0.other.000", "x"}, {"phases.0.other.001", "y"}, {"phases.1.update.000", "z"}};
  EXPECT_EQ(model_differences(a, b),
            std::vector<std::string>{"phases.0.name: join in the checkpoint, other in the job"});
  EXPECT_EQ(model_differences(a, {{"model.000", "x"}}),
            (std::vector<std::string>{"phases.0: join in the checkpoint, absent from the job",
                                      "phases.1: update in the checkpoint, absent from the job",
                                      "model: absent from the checkpoint, a network in the job"}));
}

}  // namespace
}  // namespace flux
