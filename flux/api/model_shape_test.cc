// Where the parts of a model with several phases lie, and that only those of a phase travel.
#include "flux/api/model_shape.h"

#include <numeric>

#include <gtest/gtest.h>

#include "flux/api/wire_data.h"

namespace flux {
namespace {

ModelShape two_phases() {
  // 3 dense shards of the first phase (40000 floats), 1 of the second.
  return {8, {4, 1, 2}, 40005, 1, {}, {{{4, 1, 0}, 40000}, {{4, 0, 2}, 5}}};
}

TEST(ModelShape, DenseShardsLieInOnePhase) {
  const ModelShape shape = two_phases();
  ASSERT_EQ(shape.dense_shards(), 4U);
  EXPECT_EQ(shape.all_shards(), 12U);
  uint64_t end = 0;
  for (uint32_t d = 0; d < 4; ++d) {
    EXPECT_EQ(shape.dense_begin(d), end);
    end += shape.dense_size(d);
  }
  EXPECT_EQ(end, 40005U);
  EXPECT_EQ(shape.dense_begin(3), 40000U);
  for (uint32_t d = 0; d < 4; ++d) EXPECT_EQ(shape.phase_of_dense(d), d < 3 ? 0U : 1U);
  const PhaseView second = shape.phase(1);
  EXPECT_EQ(second.parameters(), 5U);
  EXPECT_FALSE(second.has_table(1));
  EXPECT_FALSE(second.has_dense(2));
  EXPECT_TRUE(second.has_dense(3));
  EXPECT_TRUE(shape.has_phase(1));
  EXPECT_FALSE(shape.has_phase(2));
}

TEST(ModelShape, OnePhaseIsTheWholeModel) {
  const ModelShape shape{8, {4, 1}, 40000};
  EXPECT_TRUE(shape.has_phase(7));
  EXPECT_EQ(shape.phase(7).parameters(), 40000U);
  EXPECT_EQ(shape.phase(7).last_dense, shape.dense_shards());
}

// A push of the second phase: what arrives, in every form of numbers.
TEST(ModelShape, APushHasThePartsOfItsPhaseAlone) {
  const ModelShape shape = two_phases();
  std::vector<uint64_t> keys = {11, 12, 13};
  std::vector<uint32_t> begin = {0, 1, 1, 1, 1, 1, 1, 1, 3}, counts = {1, 2, 3};
  std::vector<float> first(12), third(6), dense(5);
  std::iota(first.begin(), first.end(), 1.0F);
  std::iota(third.begin(), third.end(), 50.0F);
  std::iota(dense.begin(), dense.end(), 100.0F);
  const float* tables[] = {first.data(), nullptr, third.data()};
  std::vector<ShardId> shards(12);
  std::iota(shards.begin(), shards.end(), 0U);
  const std::vector<ShardEpoch> epochs(12);
  PushRequest request;
  request.claim = {1, 9, {{{0, 1, 0, 3}, 0, 1}}, Verdict::kApplied};
  request.shards = shards;
  request.epochs = epochs;
  request.keys = {keys.data(), begin.data()};
  request.counts = counts.data();
  request.tables = tables;
  request.dense = dense.data();
  for (const WireValue value : {WireValue::kFp32, WireValue::kFp16, WireValue::kBf16}) {
    Buffer<uint16_t> halves;
    const auto sent = encode_push(request, shape, value, &halves);
    ASSERT_TRUE(sent.is_ok()) << sent.status().message();
    std::vector<uint64_t> memory(1000);
    auto* to = reinterpret_cast<std::byte*>(memory.data());
    size_t bytes = 0;
    for (const auto& span : sent.value().payload) {
      std::copy(span.begin(), span.end(), to + bytes);
      bytes += span.size();
    }
    EXPECT_LT(bytes, 1000U) << "nothing of the first phase's 40000";
    WirePush got;
    const auto shape_of = [&](uint64_t) { return &shape; };
    const Status read = decode_push(sent.value().control, {to, bytes}, shape_of, &got);
    ASSERT_TRUE(read.is_ok()) << read.message();
    EXPECT_EQ(got.request.tables[1], nullptr);
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got.request.tables[2][i], third[i]);
    for (uint32_t d = 0; d < 3; ++d) EXPECT_EQ(got.request.dense_parts[d], nullptr);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(got.request.dense_parts[3][i], dense[i]);
  }
  request.claim.ids.push_back({{0, 0, 0, 4}, 0, 1});
  Buffer<uint16_t> halves;
  EXPECT_FALSE(encode_push(request, shape, WireValue::kFp32, &halves).is_ok()) << "two phases";
  request.claim.ids = {{{0, 2, 0, 4}, 0, 1}};
  EXPECT_FALSE(encode_push(request, shape, WireValue::kFp32, &halves).is_ok()) << "no such phase";
}

}  // namespace
}  // namespace flux
