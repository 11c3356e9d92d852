// Leases of one section to many threads: every block once, and none after a stop.
#include "flux/coordinator/coordinator.h"

#include <numeric>
#include <thread>

#include <gtest/gtest.h>

namespace flux {
namespace {

constexpr uint32_t kBlocks = 200;

void begin(Coordinator* coordinator, std::vector<uint32_t> marked, bool safe) {
  std::vector<uint32_t> order(kBlocks);
  std::iota(order.rbegin(), order.rend(), 0U);
  coordinator->begin_section({2, 0, 1, 0}, std::vector<uint8_t>(kBlocks, 2), order, marked, safe);
}

TEST(Coordinator, LeasesEveryBlockOnce) {
  Coordinator coordinator(3, {1, 2});
  EXPECT_EQ(coordinator.lease(0).kind, LeaseReply::Kind::kEnd) << "no section yet";
  EXPECT_FALSE(coordinator.section_applied());
  std::vector<uint32_t> marked(kBlocks, 0);
  marked[7] = 0b10;
  marked[9] = 0b11;
  begin(&coordinator, marked, true);
  EXPECT_EQ(coordinator.counts().done, 1U);
  std::vector<std::vector<BlockLease>> leases(4);
  std::vector<std::thread> threads;
  for (WorkerId t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (LeaseReply r = coordinator.lease(t); r.kind == LeaseReply::Kind::kBlock;
           r = coordinator.lease(t)) {
        leases[t].push_back(r.lease);
        for (uint8_t b = 0; b < 2; ++b) coordinator.batch_applied({r.lease.id, b, 2});
        (void)coordinator.route();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<int> seen(kBlocks, 0);
  for (const auto& some : leases)
    for (const BlockLease& lease : some) {
      ++seen[lease.id.block];
      EXPECT_EQ(lease.id.pass, 2U);
      EXPECT_EQ(lease.id.epoch, 1U);
      EXPECT_EQ(lease.skip_mask, lease.id.block == 7 ? 0b10U : 0U);
    }
  for (uint32_t b = 0; b < kBlocks; ++b) EXPECT_EQ(seen[b], b == 9 ? 0 : 1) << b;
  EXPECT_TRUE(coordinator.section_applied());
  EXPECT_EQ(coordinator.counts().applied, kBlocks - 1);
}

TEST(Coordinator, FollowsTheOrderAndStops) {
  Coordinator coordinator(3, {1, 2});
  begin(&coordinator, std::vector<uint32_t>(kBlocks, 0), false);
  EXPECT_EQ(coordinator.lease(0).lease.id.block, kBlocks - 1);
  EXPECT_EQ(coordinator.lease(1).lease.id.block, kBlocks - 2);
  coordinator.stop_leasing();
  EXPECT_EQ(coordinator.lease(0).kind, LeaseReply::Kind::kEnd);
  const auto counts = coordinator.counts();
  EXPECT_EQ(counts.todo, kBlocks - 2);
  EXPECT_EQ(counts.pending, 2U);
  EXPECT_FALSE(coordinator.section_applied());
}

TEST(Coordinator, RoutesEveryShardToTheOneServer) {
  Coordinator coordinator(3, {1, 2});
  const ShardRoute route = coordinator.route();
  EXPECT_EQ(route.server, (std::vector<ServerId>{0, 0, 0}));
  EXPECT_EQ(route.epoch, (std::vector<ShardEpoch>(3, {1, 2})));
}

}  // namespace
}  // namespace flux
