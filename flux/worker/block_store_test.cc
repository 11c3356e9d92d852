#include "flux/worker/block_store.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

// The factor of a batch is that of its place in the run, whoever gets it and when.
TEST(BlockStore, EachBatchHasTheRateOfItsPlaceInTheRun) {
  BlockStoreOptions options;
  options.lr_schedule = LrSchedule({.kind = "constant", .warmup_batches = 100});
  BlockStore store(options);
  OpenBlock block;
  block.lease.id = {0, 0, 0, 3};
  block.lease.batches = 4;
  block.lease.skip_mask = 0b0010;
  block.lr_scale = 0.5F;
  block.first_batch = 49;
  store.leased({.id = block.lease.id, .round = {}}, block.lease);
  store.opening(block.lease);
  store.add(block);
  BatchItem item;
  for (const uint8_t batch : {0, 2, 3}) {
    ASSERT_EQ(store.next(&item), BatchSource::Next::kItem);
    EXPECT_EQ(item.id.batch, batch);
    EXPECT_FLOAT_EQ(item.lr_scale, 0.5F * 0.01F * static_cast<float>(50 + batch));
  }
}

}  // namespace
}  // namespace flux
