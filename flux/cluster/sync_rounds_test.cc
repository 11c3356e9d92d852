// Runs tests/scripts/rounds_*.txt (base/script_test.h) and rounds under random losses.
//
//   queue 3 2 1                batches of each block, leased in order; time-out 30 s
//   at T                       the time in seconds
//   add W LANES | remove W | die W     `die` also releases its blocks in the queue
//   wait W.L                   a lane asks
//   form                       forms a round if it can
//   applied B.b
//   expire                     the queue takes blocks back; their lanes are out
#include "flux/cluster/sync_rounds.h"

#include <numeric>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flux/base/random.h"
#include "flux/base/script_test.h"

namespace flux {
namespace {

BlockQueue make_queue(const std::vector<uint8_t>& batches, BlockQueueOptions options = {}) {
  std::vector<uint32_t> order(batches.size());
  std::iota(order.begin(), order.end(), 0U);
  return BlockQueue(BlockId{}, batches, order, options);
}

class Script {
 public:
  std::string run_line(const std::string& line) {
    std::istringstream in(line);
    std::string verb;
    in >> verb;
    unsigned a = 0, b = 0;
    char dot = 0;
    std::string out;
    if (verb == "queue") {
      std::vector<uint8_t> batches;
      while (in >> a) batches.push_back(static_cast<uint8_t>(a));
      queue_.emplace(make_queue(batches));
      rounds_ = SyncRounds();
      return "";
    }
    if (verb == "at" && in >> now_) {
      now_ *= kSecond;
      return "";
    }
    if (verb == "form") {
      out = form();
    } else if (verb == "expire") {
      for (const BlockLease& lease : queue_->expire(now_))
        if (const auto gone = rounds_.remove_block(lease.id)) out += show(*gone);
    } else if (verb == "add" && in >> a >> b) {
      rounds_.add_worker(a, b);
    } else if ((verb == "remove" || verb == "die") && in >> a) {
      for (const auto& gone : rounds_.remove_worker(a)) out += show(gone);
      if (verb == "die") queue_->release(a, true);
    } else if (verb == "wait" && in >> a >> dot >> b) {
      if (!rounds_.wait(a, b)) out = "> no such lane\n";
    } else if (verb == "applied" && in >> a >> dot >> b) {
      queue_->batch_applied({{0, 0, 0, a}, static_cast<uint8_t>(b), 32}, now_);
    } else {
      ADD_FAILURE() << "unknown line: " << line;
    }
    return out + standing();
  }

 private:
  static std::string show(const SyncRounds::Voided& gone) {
    return fmt::format("> void block {} in round {}\n", gone.block.block, gone.round);
  }
  std::string form() {
    SyncRound round;
    std::string out;
    for (const auto& given : rounds_.form(&*queue_, now_, &round))
      out += fmt::format("> {}.{} gets block {}\n", given.worker, given.lane, given.lease.id.block);
    if (round.id == 0) return "> no round\n";
    out += fmt::format("> round {}:", round.id);
    for (uint32_t step = 0; step < sync_steps(round); ++step) {
      out += fmt::format(" step {}", step);
      for (const BatchId& id : sync_step(round, step).ids)
        out += fmt::format(" {}.{}/{}", id.block.block, id.batch, id.batches_in_block);
      out += ";";
    }
    EXPECT_EQ(sync_step(round, sync_steps(round)).ids.size(), 0U);
    return out + "\n";
  }
  std::string standing() const {
    std::string text = rounds_.ready() ? "> ready\n" : "> waits for";
    if (rounds_.ready()) return text;
    const auto missing = rounds_.missing();
    if (missing.empty()) text += " anybody";
    for (const auto& [worker, lane] : missing) text += fmt::format(" {}.{}", worker, lane);
    return text + "\n";
  }

  std::optional<BlockQueue> queue_;
  SyncRounds rounds_;
  TimeNs now_ = 0;
};

FLUX_SCRIPT_TEST(SyncRoundsScript, "rounds_", Script);

// Lanes of workers that come and go train everything; a block is in one live round at most, and
// what a lost worker had in a round is voided, all of it and nothing else.
TEST(SyncRounds, ARoundKnowsHowManyLanesThereAre) {
  SyncRounds rounds;
  rounds.add_worker(1, 2);
  rounds.add_worker(2, 1);
  for (const auto& [worker, lane] : {std::pair{1U, 0U}, {1U, 1U}, {2U, 0U}})
    EXPECT_TRUE(rounds.wait(worker, lane));
  BlockQueue queue({0, 0, 0, 0}, {4, 4}, {0, 1});
  SyncRound round;
  EXPECT_EQ(rounds.form(&queue, 0, &round).size(), 2U) << "two blocks are left for three lanes";
  EXPECT_EQ(round.lanes, 3U);
}

TEST(SyncRounds, EverythingIsTrainedWhateverHappens) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    std::vector<uint8_t> batches(1 + random.below(30));
    for (uint8_t& n : batches) n = static_cast<uint8_t>(1 + random.below(6));
    BlockQueueOptions options;
    options.deaths_alone_max = 0;
    BlockQueue queue = make_queue(batches, options);
    SyncRounds rounds;
    struct Lane {
      bool asked = false;
      std::optional<BlockLease> lease;
      uint64_t round = 0;
    };
    std::map<WorkerId, std::vector<Lane>> workers;
    WorkerId last = 0;
    uint64_t last_round = 0;
    for (int step = 0; !queue.all_applied(); ++step) {
      ASSERT_LT(step, 100000);
      if (workers.size() < 3 && random.chance(0.05)) {
        workers[++last].resize(1 + random.below(3));
        rounds.add_worker(last, static_cast<uint32_t>(workers[last].size()));
      }
      if (!workers.empty() && random.chance(0.02)) {
        const auto gone = workers.begin();
        std::set<std::pair<uint64_t, BlockId>> expected, voided;
        for (const Lane& lane : gone->second)
          if (lane.lease) expected.insert({lane.round, lane.lease->id});
        for (const auto& v : rounds.remove_worker(gone->first)) voided.insert({v.round, v.block});
        ASSERT_EQ(voided, expected);
        queue.release(gone->first, true);
        workers.erase(gone);
      }
      bool all_asked = !workers.empty();
      for (auto& [id, lanes] : workers)
        for (uint32_t i = 0; i < lanes.size(); ++i) {
          Lane& lane = lanes[i];
          if (!lane.asked && random.chance(0.3)) {
            if (lane.lease)
              for (uint8_t b = 0; b < lane.lease->batches; ++b)
                if (((lane.lease->skip_mask >> b) & 1) == 0)
                  queue.batch_applied({lane.lease->id, b, 32}, 0);
            lane = {true, std::nullopt, 0};
            ASSERT_TRUE(rounds.wait(id, i));
          }
          all_asked = all_asked && lane.asked;
        }
      ASSERT_EQ(rounds.ready(), all_asked);
      SyncRound round;
      const size_t to_lease = queue.todo();
      const auto given = rounds.form(&queue, 0, &round);
      ASSERT_EQ(given.size(), round.members.size());
      ASSERT_EQ(given.empty(), round.id == 0);
      ASSERT_EQ(given.empty(), !all_asked || to_lease == 0);
      if (given.empty()) continue;
      ASSERT_EQ(round.id, ++last_round);
      for (size_t i = 1; i < round.members.size(); ++i)
        ASSERT_LT(round.members[i - 1].block, round.members[i].block);
      for (const auto& g : given) {
        Lane& lane = workers.at(g.worker).at(g.lane);
        ASSERT_TRUE(lane.asked);
        for (const auto& [id, lanes] : workers)
          for (const Lane& other : lanes)
            ASSERT_FALSE(other.lease && other.lease->id == g.lease.id) << "leased twice";
        lane = {false, g.lease, round.id};
      }
    }
  }
}

}  // namespace
}  // namespace flux
