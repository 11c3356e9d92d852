// Runs tests/scripts/queue_*.txt: events of a block queue, and below each line where it stands.
//
//   queue 3 2 1 / 2 0 1        batches of each block / order of leases; section pass 4 epoch 1
//   lease W                    worker W asks
//   applied B.b                every shard acknowledged batch b of block B
//   late B.b                   the same of another section
//   release W                  worker W is gone
//   recompute [safe] m m m     masks of batches that every shard has
//   safe                       everything applied is in a manifest
// Lines that begin with "> " are what came out; "#" begins a comment.
#include "flux/cluster/block_queue.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/cluster/schedule.h"

namespace flux {
namespace {

namespace fs = std::filesystem;

constexpr BlockId kSection{4, 0, 1, 0};

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb, out;
    in >> verb;
    if (verb == "queue") {
      make(&in);
    } else if (verb == "lease") {
      WorkerId worker = 0;
      in >> worker;
      BlockLease lease;
      out = queue_->lease(worker, &lease)
                ? fmt::format("> {}: {} batches, skip {:b}, attempt {}\n", to_string(lease.id),
                              lease.batches, lease.skip_mask, lease.attempt)
                : "> nothing to lease\n";
    } else if (verb == "applied" || verb == "late") {
      BatchId id{kSection, 0, 32};
      unsigned batch = 0;
      char dot = 0;
      in >> id.block.block >> dot >> batch;
      id.batch = static_cast<uint8_t>(batch);
      if (verb == "late") id.block.epoch = 0;
      queue_->batch_applied(id);
    } else if (verb == "release") {
      WorkerId worker = 0;
      in >> worker;
      queue_->release(worker);
    } else if (verb == "recompute") {
      recompute(&in);
    } else if (verb == "safe") {
      queue_->all_applied_are_safe();
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
    return out + standing();
  }

 private:
  void make(std::istringstream* in) {
    std::vector<uint8_t> batches;
    std::vector<uint32_t> order;
    bool ordering = false;
    for (std::string word; *in >> word;) {
      if (word == "/") {
        ordering = true;
      } else if (ordering) {
        order.push_back(static_cast<uint32_t>(std::stoul(word)));
      } else {
        batches.push_back(static_cast<uint8_t>(std::stoul(word)));
      }
    }
    blocks_ = batches.size();
    queue_.emplace(kSection, batches, order);
  }
  void recompute(std::istringstream* in) {
    bool safe = false;
    std::vector<uint32_t> masks;
    for (std::string word; *in >> word;) {
      if (word == "safe") {
        safe = true;
      } else {
        masks.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 2)));
      }
    }
    queue_->recompute(masks, safe);
  }
  std::string standing() const {
    std::string states;
    for (uint32_t b = 0; b < blocks_; ++b)
      states += fmt::format(" {}", block_state_name(queue_->state(b)));
    return fmt::format(">{}: {} to lease, {} pending, {} applied, {} done{}{}\n", states,
                       queue_->todo(), queue_->pending(), queue_->applied(), queue_->done(),
                       queue_->all_applied() ? ", all applied" : "",
                       queue_->all_done() ? ", all done" : "");
  }

  std::optional<BlockQueue> queue_;
  size_t blocks_ = 0;
};

std::vector<std::string> scripts() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(FLUX_SOURCE_DIR "/tests/scripts"))
    if (entry.path().filename().string().starts_with("queue_"))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class BlockQueueScript : public testing::TestWithParam<std::string> {};

TEST_P(BlockQueueScript, DoesWhatItSays) {
  const std::string path = FLUX_SOURCE_DIR "/tests/scripts/" + GetParam();
  std::ifstream file(path);
  Script script;
  std::string expected, found;
  for (std::string line; std::getline(file, line);) {
    expected += line + "\n";
    if (line.starts_with("> ")) continue;
    found += line + "\n";
    if (!line.empty() && line[0] != '#') found += script.run_line(line);
  }
  if (found == expected) return;
  const std::string now = testing::TempDir() + GetParam();
  std::ofstream(now) << found;
  ADD_FAILURE() << "the queue did:\n" << found << "if that is right: cp " << now << " " << path;
}

INSTANTIATE_TEST_SUITE_P(All, BlockQueueScript, testing::ValuesIn(scripts()), [](const auto& info) {
  return info.param.substr(0, info.param.find('.'));
});

// Workers come, go and die at random; in the end every batch was handed out and is done.
TEST(BlockQueue, EveryBatchIsTrainedWhateverHappens) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    std::vector<uint8_t> batches(1 + random.below(40));
    for (uint8_t& n : batches) n = static_cast<uint8_t>(1 + random.below(32));
    std::vector<uint32_t> order(batches.size());
    std::iota(order.begin(), order.end(), 0U);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    BlockQueue queue(kSection, batches, order);
    std::vector<uint32_t> shards_have(batches.size(), 0);  // what is really applied
    std::vector<std::vector<BlockLease>> held(3);
    for (int step = 0; !queue.all_done(); ++step) {
      ASSERT_LT(step, 100000);
      const auto worker = static_cast<WorkerId>(random.below(3));
      BlockLease lease;
      if (random.chance(0.5) && queue.lease(worker, &lease)) held[worker].push_back(lease);
      if (random.chance(0.02)) {
        held[worker].clear();
        queue.release(worker);
      }
      if (random.chance(0.05)) queue.recompute(shards_have, random.chance(0.5));
      if (random.chance(0.02)) queue.all_applied_are_safe();
      if (held[worker].empty()) continue;
      lease = held[worker].back();
      held[worker].pop_back();
      ASSERT_EQ(lease.skip_mask & ~shards_have[lease.id.block], 0U) << "skips what nobody has";
      for (uint8_t b = 0; b < lease.batches; ++b) {
        if ((lease.skip_mask >> b) & 1) continue;
        shards_have[lease.id.block] |= 1U << b;
        queue.batch_applied({lease.id, b, static_cast<uint8_t>(lease.batches)});
      }
    }
    for (size_t b = 0; b < batches.size(); ++b) EXPECT_EQ(shards_have[b], batch_mask(batches[b]));
  }
}

TEST(Schedule, PhasesThenEpochsInOrder) {
  const Schedule schedule{2, 2, 3};
  ASSERT_EQ(schedule.sections(), 6U);
  std::vector<BlockId> expected;
  for (uint16_t phase = 0; phase < 2; ++phase)
    for (uint16_t epoch = 0; epoch < 3; ++epoch) expected.push_back({1, phase, epoch, 0});
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(schedule.section(1, i), expected[i]);
}

}  // namespace
}  // namespace flux
