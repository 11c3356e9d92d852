#include "flux/table/dense_shard.h"

#include <algorithm>
#include <memory>
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

// Every way to look at a shard, after every number of gradients that were left for later.
TEST_P(DenseShardTest, GradientsLeftForLaterAreSeenByWhoeverLooks) {
  const size_t n = 203;
  Random random(7);
  const std::vector<float> values = normals(random, n);
  for (size_t steps = 1; steps <= 9; ++steps) {
    DenseShard now(optimizer_.get(), 3 * n, n);
    DenseShard pulled(optimizer_.get(), 3 * n, n), saved(optimizer_.get(), 3 * n, n);
    DenseShard hashed(optimizer_.get(), 3 * n, n), pushed(optimizer_.get(), 3 * n, n);
    for (DenseShard* shard : {&now, &pulled, &saved, &hashed, &pushed}) shard->init(values);
    for (size_t step = 1; step <= steps; ++step) {
      const auto gradient = std::make_shared<std::vector<float>>(normals(random, n));
      const float scale = step % 3 == 0 ? 0.7F : 1.0F;
      now.push(gradient->data(), step, scale);
      for (DenseShard* shard : {&pulled, &saved, &hashed})
        shard->push_later(gradient->data(), gradient, step, scale);
      if (step < steps)
        pushed.push_later(gradient->data(), gradient, step, scale);
      else
        pushed.push(gradient->data(), step, scale);
      for (DenseShard* shard : {&pulled, &saved, &hashed, &pushed})
        ASSERT_EQ(shard->examples(), now.examples());
    }
    std::vector<float> expected(n), found(n);
    now.pull(expected.data());
    pulled.pull(found.data());
    ASSERT_EQ(found, expected) << steps;
    pushed.pull(found.data());
    ASSERT_EQ(found, expected) << steps;
    std::string a, b;
    now.save(&a);
    saved.save(&b);
    ASSERT_EQ(a, b) << steps;
    ASSERT_EQ(hashed.content_hash(), now.content_hash()) << steps;
  }
}

TEST_P(DenseShardTest, FewGradientsWaitAndALoadForgetsThem) {
  const size_t n = 64;
  Random random(8);
  DenseShard shard(optimizer_.get(), 0, n), other(optimizer_.get(), 0, n);
  shard.init(normals(random, n));
  other.init(normals(random, n));
  std::string saved;
  other.save(&saved);
  std::vector<std::weak_ptr<const void>> alive;
  const auto waiting = [&] {
    return std::count_if(alive.begin(), alive.end(), [](const auto& one) { return !one.expired(); });
  };
  for (int step = 0; step < 30; ++step) {
    const auto gradient = std::make_shared<std::vector<float>>(normals(random, n));
    alive.emplace_back(gradient);
    shard.push_later(gradient->data(), gradient, 1);
  }
  EXPECT_LT(waiting(), 4);
  EXPECT_GT(waiting(), 0);
  ASSERT_TRUE(shard.load(saved).is_ok());
  EXPECT_EQ(waiting(), 0);
  EXPECT_EQ(shard.content_hash(), other.content_hash());
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
