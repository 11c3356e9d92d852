// Feed over an in-memory dataset: every batch exactly once, whoever asks.
#include "flux/worker/feed.h"

#include <algorithm>
#include <map>
#include <thread>

#include <gtest/gtest.h>

namespace flux {
namespace {

constexpr uint32_t kBlocks = 23;

uint32_t batches_of(uint32_t block) {
  return 1 + block * 7 % 32;
}

class FakeReader final : public BlockReader {
 public:
  Status read_batch(uint32_t, Batch*) const override { return Status::ok(); }
};

class FakeDataset final : public Dataset {
 public:
  const Geometry& geometry() const override { return geometry_; }
  uint32_t slots() const override { return 1; }
  uint32_t dense() const override { return 0; }
  Result<std::unique_ptr<BlockReader>> open_block(uint32_t block, uint32_t epoch) const override {
    if (block == bad_block) return error(Code::kIo, "block {} is unreadable", block);
    ++opened;
    if (epoch != 3) return error(Code::kInvalid, "epoch {}", epoch);
    return std::unique_ptr<BlockReader>(std::make_unique<FakeReader>());
  }
  uint32_t bad_block = ~0U;
  mutable std::atomic<uint32_t> opened{0};

 private:
  Geometry geometry_;
};

class FakeCoordinator final : public CoordinatorPort {
 public:
  LeaseReply lease(WorkerId) override {
    const uint32_t block = next.fetch_add(1);
    if (block >= kBlocks) return {};
    LeaseReply reply;
    reply.kind = LeaseReply::Kind::kBlock;
    reply.lease = {{1, 0, 3, block}, batches_of(block), skip(block), 1};
    return reply;
  }
  void batch_applied(const BatchId&) override {}
  ShardRoute route() override { return {}; }
  // Some of a block, the whole of every tenth.
  uint32_t skip(uint32_t block) const {
    if (!skips) return 0;
    return block % 10 == 0 ? batch_mask(batches_of(block))
                           : 0x5A5A5A5AU & batch_mask(batches_of(block));
  }
  bool skips = false;
  std::atomic<uint32_t> next{0};
};

std::vector<BatchId> expected(const FakeCoordinator& coordinator) {
  std::vector<BatchId> ids;
  for (uint32_t block = 0; block < kBlocks; ++block)
    for (uint8_t b = 0; b < batches_of(block); ++b)
      if (((coordinator.skip(block) >> b) & 1) == 0)
        ids.push_back({{1, 0, 3, block}, b, static_cast<uint8_t>(batches_of(block))});
  return ids;
}

std::vector<BatchId> run(Feed* feed, uint32_t threads) {
  std::vector<std::vector<BatchId>> got(threads);
  std::vector<std::thread> pool;
  for (uint32_t t = 0; t < threads; ++t)
    pool.emplace_back([&, t] {
      for (FeedItem item; feed->next(&item);) {
        EXPECT_NE(item.reader, nullptr);
        got[t].push_back(item.id);
      }
    });
  for (std::thread& thread : pool) thread.join();
  std::vector<BatchId> all;
  for (const auto& some : got) all.insert(all.end(), some.begin(), some.end());
  return all;
}

TEST(Feed, EveryBatchExactlyOnce) {
  for (const bool skips : {false, true})
    for (uint32_t threads = 1; threads <= 8; ++threads)
      for (int round = 0; round < 5; ++round) {
        FakeCoordinator coordinator;
        coordinator.skips = skips;
        FakeDataset dataset;
        Feed feed(0, &coordinator, &dataset, threads, nullptr);
        std::vector<BatchId> got = run(&feed, threads);
        if (threads > 1) std::sort(got.begin(), got.end());  // alone, the order is the queue's
        ASSERT_EQ(got, expected(coordinator)) << threads << " threads";
        EXPECT_TRUE(feed.status().is_ok());
        EXPECT_EQ(dataset.opened.load(), kBlocks);
        FeedItem item;
        EXPECT_FALSE(feed.next(&item)) << "the end stays the end";
      }
}

TEST(Feed, OneThreadOpensABlockOnlyWhenItNeedsIt) {
  FakeCoordinator coordinator;
  FakeDataset dataset;
  Feed feed(0, &coordinator, &dataset, 1, nullptr);
  FeedItem item;
  for (uint32_t block = 0; block < kBlocks; ++block)
    for (uint32_t b = 0; b < batches_of(block); ++b) {
      ASSERT_TRUE(feed.next(&item));
      ASSERT_EQ(dataset.opened.load(), block + 1);
    }
}

TEST(Feed, AnUnreadableBlockEndsItForAll) {
  for (uint32_t threads = 1; threads <= 8; ++threads) {
    FakeCoordinator coordinator;
    FakeDataset dataset;
    dataset.bad_block = 11;
    Feed feed(0, &coordinator, &dataset, threads, nullptr);
    const std::vector<BatchId> got = run(&feed, threads);
    EXPECT_EQ(feed.status().code(), Code::kIo);
    EXPECT_EQ(feed.status().message(), "block 11 is unreadable");
    for (const BatchId& id : got) EXPECT_NE(id.block.block, 11U);
    std::map<BatchId, int> times;
    for (const BatchId& id : got) EXPECT_EQ(++times[id], 1);
  }
}

TEST(Feed, StopFlagEndsIt) {
  FakeCoordinator coordinator;
  FakeDataset dataset;
  std::atomic<bool> stop{false};
  Feed feed(0, &coordinator, &dataset, 2, &stop);
  FeedItem item;
  ASSERT_TRUE(feed.next(&item));
  stop = true;
  EXPECT_FALSE(feed.next(&item));
  EXPECT_TRUE(feed.status().is_ok()) << "being asked to stop is no failure";
}

TEST(Feed, AFailedTrainerEndsItForAllAndTheFirstReasonStays) {
  FakeCoordinator coordinator;
  FakeDataset dataset;
  Feed feed(0, &coordinator, &dataset, 4, nullptr);
  std::atomic<uint32_t> taken{0};
  std::vector<std::thread> pool;
  for (int t = 0; t < 4; ++t)
    pool.emplace_back([&] {
      for (FeedItem item; feed.next(&item);)
        if (++taken == 50) feed.fail(Status(Code::kStale, "fenced off"));
    });
  for (std::thread& thread : pool) thread.join();
  feed.fail(Status(Code::kIo, "later"));
  EXPECT_EQ(feed.status().message(), "fenced off");
}

}  // namespace
}  // namespace flux
