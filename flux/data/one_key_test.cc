#include "flux/data/one_key.h"

#include <gtest/gtest.h>

#include "flux/data/test_files.h"

namespace flux {
namespace {

Batch batch_of(std::vector<uint32_t> begin, uint32_t slots) {
  Batch batch;
  batch.slots = slots;
  batch.size = static_cast<uint32_t>((begin.size() - 1) / slots);
  batch.begin = std::move(begin);
  return batch;
}

TEST(OneKey, TakesTheCountsAwayWhereEachIsOne) {
  Batch batch = batch_of({0, 1, 2, 3, 4}, 2);
  EXPECT_FALSE(take_one_key_each(&batch).has_value());
  EXPECT_TRUE(batch.begin.empty());
}

TEST(OneKey, NamesTheFirstSlotThatHasAnotherNumber) {
  const std::vector<SlotOptions> slots = {{"user", "", false, false}, {"item", "", false, false}};
  Batch many = batch_of({0, 1, 2, 3, 6}, 2);
  const auto wrong = take_one_key_each(&many);
  ASSERT_TRUE(wrong.has_value());
  EXPECT_EQ(wrong->example, 1U);
  EXPECT_EQ(wrong->text(slots),
            "slot 'item' has 3 keys; data.one_key says that every slot has one");
  Batch none = batch_of({0, 1, 2, 2, 4}, 2);
  EXPECT_EQ(take_one_key_each(&none)->text(slots),
            "slot 'user' has no keys; data.one_key says that every slot has one");
}

// Of every format that can say so: the same batches as lines with fixed columns, and a refusal.
TEST(OneKey, LinesAreReadWithoutCounts) {
  const TestDirectory folder;
  const std::string path = folder.write("a.txt", "1 user:1 item:2\n0 item:4 user:3\n");
  DataOptions options;
  options.format = "feasign";
  options.slots = {{"user", "", false, false}, {"item", "", false, false}};
  options.raw_keys = options.one_key = true;
  options.shuffle = false;
  EXPECT_FALSE(features_of(options).many_keys);
  const auto read = [&]() -> Result<Batch> {
    FLUX_ASSIGN_OR_RETURN(const Geometry cut, Dataset::scan({&path, 1}, options, 1));
    FLUX_ASSIGN_OR_RETURN(const auto data, Dataset::open(cut, options));
    FLUX_ASSIGN_OR_RETURN(const auto block, data->open_block(0, 0));
    Batch batch;
    FLUX_RETURN_IF_ERROR(block->read_batch(0, &batch));
    return batch;
  };
  const Result<Batch> batch = read();
  ASSERT_TRUE(batch.is_ok()) << batch.status().message();
  EXPECT_TRUE(batch.value().begin.empty());
  EXPECT_EQ(batch.value().keys, (std::vector<uint64_t>{1, 2, 3, 4}));
  folder.write("a.txt", "1 user:1 item:2\n0 user:3\n");
  EXPECT_EQ(read().status().message(),
            path + ":2:1: slot 'item' has no keys; data.one_key says that every slot has one");
}

}  // namespace
}  // namespace flux
