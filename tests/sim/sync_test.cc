// sync: step j of a round is batch j of each worker's block, and their mean is one update.
#include <gtest/gtest.h>

#include "tests/sim/tiny_job.h"
#include "tests/sim/trainer_rig.h"

namespace flux {
namespace {

using tiny::Data;
using tiny::Servers;
using tiny::TrainerRig;

void expect_same_model(const Servers& a, const Servers& b, const Data& data, double tolerance) {
  const std::map<uint64_t, float> left = a.weights(data), right = b.weights(data);
  ASSERT_EQ(left.size(), right.size());
  double most = 0;
  for (const auto& [key, w] : left) {
    EXPECT_NEAR(w, right.at(key), tolerance) << key;
    most = std::max<double>(most, std::abs(w));
  }
  EXPECT_GT(most, 0.1) << "something was learnt";
  const std::vector<float> x = a.dense(), y = b.dense();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], tolerance) << i;
}

// Three workers with batches of 16 against one with batches of 48 that hold the same records: 200
// steps.
TEST(Sync, EqualsOneWorkerWithTheWholeBatch) {
  constexpr uint32_t kBatch = 16, kSteps = 10, kRounds = 20, kWorkers = 3;
  const Data small(size_t{kBatch} * kSteps * kRounds * kWorkers, kBatch, kBatch * kSteps);
  std::vector<tiny::Example> ordered;
  for (uint32_t round = 0; round < kRounds; ++round)
    for (uint32_t step = 0; step < kSteps; ++step)
      for (uint32_t worker = 0; worker < kWorkers; ++worker)
        for (uint32_t i = 0; i < kBatch; ++i)
          ordered.push_back(
              small.examples()[((round * kWorkers + worker) * kSteps + step) * kBatch + i]);
  const Data large(ordered, kBatch * kWorkers, kBatch * kSteps * kWorkers);
  Servers whole(1, large.geometry().hash());
  TrainerRig one("async", 1, large, &whole);
  ASSERT_TRUE(one.run());
  EXPECT_EQ(one.applied.size(), 200U);
  for (const uint32_t count : {1U, 2U}) {
    Servers servers(count, small.geometry().hash());
    TrainerRig three("sync", kWorkers, small, &servers);
    ASSERT_TRUE(three.run());
    servers.expect_counts(small, 1);
    EXPECT_EQ(three.applied.size(), 600U);
    expect_same_model(servers, whole, small, 1e-5);
  }
}

TEST(Sync, BlocksOfAllSizesAreTrainedOnce) {
  const Data data(2600, 16, 100, 5);  // the last block has other sizes
  for (const uint32_t workers : {1U, 2U, 4U}) {
    Servers servers(2, data.geometry().hash());
    TrainerRig rig("sync", workers, data, &servers);
    ASSERT_TRUE(rig.run());
    servers.expect_counts(data, 1);
  }
}

}  // namespace
}  // namespace flux
