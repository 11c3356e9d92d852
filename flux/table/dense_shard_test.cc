#include "flux/table/dense_shard.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/optimizer/reference.h"

namespace flux {
namespace {

std::vector<float> normals(Random& random, size_t n) {
  std::vector<float> values(n);
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

class DenseShardTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    options_.rule = GetParam();
    optimizer_ = std::move(make_optimizer(options_)).value();
  }
  OptimizerOptions options_;
  std::unique_ptr<const Optimizer> optimizer_;
};

TEST_P(DenseShardTest, EqualsTheReferenceRuleBitForBit) {
  const size_t n = 1003;
  const auto reference = make_reference_optimizer(options_);
  Random random(1);
  std::vector<float> row = normals(random, n);
  DenseShard shard(optimizer_.get(), 50, n);
  shard.init(row);
  row.resize(n + reference->state_size(n));
  reference->init_state(row.data() + n, n);
  for (uint64_t step = 1; step <= 10; ++step) {
    const std::vector<float> gradient = normals(random, n);
    const float scale = step % 3 == 0 ? 0.7F : 1.0F;
    shard.push(gradient.data(), 32, scale);
    reference->update(row.data(), row.data() + n, gradient.data(), n, scale);
    std::vector<float> out(n);
    shard.pull(out.data());
    ASSERT_EQ(out, std::vector<float>(row.begin(), row.begin() + static_cast<long>(n)));
    ASSERT_EQ(shard.examples(), 32 * step);
  }
}

TEST_P(DenseShardTest, ALoadedSaveGoesOnAlike) {
  const size_t n = 100;
  Random random(2);
  DenseShard a(optimizer_.get(), 7, n);
  a.init(normals(random, n));
  a.push(normals(random, n).data(), 5);
  std::string saved = "before";
  a.save(&saved);
  saved.erase(0, 6);
  EXPECT_EQ(saved.size(), a.saved_bytes());
  DenseShard b(optimizer_.get(), 7, n);
  EXPECT_NE(a.content_hash(), b.content_hash());
  ASSERT_TRUE(b.load(saved).is_ok());
  EXPECT_EQ(b.examples(), 5U);
  EXPECT_EQ(a.content_hash(), b.content_hash());
  const std::vector<float> gradient = normals(random, n);
  a.push(gradient.data(), 1);
  EXPECT_NE(a.content_hash(), b.content_hash());
  b.push(gradient.data(), 1);
  EXPECT_EQ(a.content_hash(), b.content_hash());
}

TEST_P(DenseShardTest, ForeignBytesAreRefusedAndChangeNothing) {
  DenseShard a(optimizer_.get(), 7, 100);
  DenseShard shifted(optimizer_.get(), 8, 100);
  std::string saved;
  shifted.save(&saved);
  const uint64_t before = a.content_hash();
  EXPECT_EQ(a.load(saved).code(), Code::kCorrupt);
  EXPECT_EQ(shifted.load(saved.substr(1)).code(), Code::kCorrupt);
  EXPECT_EQ(shifted.load("").code(), Code::kCorrupt);
  EXPECT_EQ(a.content_hash(), before);
}

// More shards than parameters: some are empty, and still count examples.
TEST_P(DenseShardTest, AnEmptyShardWorks) {
  DenseShard a(optimizer_.get(), 9, 0);
  a.init({});
  a.push(nullptr, 4);
  std::string saved;
  a.save(&saved);
  DenseShard b(optimizer_.get(), 9, 0);
  ASSERT_TRUE(b.load(saved).is_ok());
  EXPECT_EQ(b.examples(), 4U);
  EXPECT_EQ(a.content_hash(), b.content_hash());
}

INSTANTIATE_TEST_SUITE_P(Rules, DenseShardTest, testing::ValuesIn(optimizer_rules()));

}  // namespace
}  // namespace flux
