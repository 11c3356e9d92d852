#include "flux/cluster/lease_share.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace flux {
namespace {

TEST(LeaseShare, WhoHasNothingMayAlwaysLease) {
  EXPECT_TRUE((LeaseShare{1, 1, 1000, 0, 0}.may_lease()));
  EXPECT_TRUE((LeaseShare{1, 0, 0, 0, 0}.may_lease())) << "a worker that named no threads";
  EXPECT_TRUE((LeaseShare{1, 4, 8, 5, 31}.may_lease())) << "five blocks, almost done";
}

TEST(LeaseShare, IsAPartOfWhatIsLeftByLanes) {
  // 1000 blocks left, 2 of 10 threads: 100 blocks.
  EXPECT_TRUE((LeaseShare{1000, 2, 10, 99, 99 * 32}.may_lease()));
  EXPECT_FALSE((LeaseShare{1000, 2, 10, 100, 100 * 32}.may_lease()));
  EXPECT_FALSE((LeaseShare{10, 2, 10, 1, 32}.may_lease()));
  EXPECT_TRUE((LeaseShare{~uint64_t{0} / 8, 2, 10, 64, 64 * 32}.may_lease()));
}

// Workers of given speeds (batches per second, one lane) share blocks of 32 batches. Each asks
// while it has less than three seconds of work. What is measured: for how long there was a worker
// without work before the end, and how much work ahead the poorest had when half was done.
struct Played {
  double idle_s = 0;
  double ahead_s = 1e9;
};

Played play(const std::vector<double>& speeds, uint64_t blocks,
            const std::function<bool(const LeaseShare&)>& may_lease) {
  constexpr double kStep = 0.01;
  constexpr double kBatches = 32;
  std::vector<double> left(speeds.size(), 0);  // batches, begun ones in parts
  uint64_t todo = blocks;
  Played out;
  const auto held = [&](size_t w) { return static_cast<uint64_t>(left[w] / kBatches + 0.999); };
  for (double now = 0; now < 1e6; now += kStep) {
    for (size_t w = 0; w < speeds.size(); ++w)
      while (todo > 0 && left[w] < 3 * speeds[w] &&
             may_lease({todo, 1, speeds.size(), held(w), static_cast<uint64_t>(left[w])})) {
        --todo;
        left[w] += kBatches;
      }
    if (todo > blocks / 2 - 4 && todo < blocks / 2)
      for (size_t w = 0; w < speeds.size(); ++w)
        out.ahead_s = std::min(out.ahead_s, left[w] / speeds[w]);
    const auto idle = std::count_if(left.begin(), left.end(), [](double b) { return b <= 0; });
    if (static_cast<size_t>(idle) == speeds.size()) return out;
    if (idle > 0) out.idle_s += kStep;
    for (size_t w = 0; w < speeds.size(); ++w) left[w] = std::max(0.0, left[w] - speeds[w] * kStep);
  }
  return out;
}

const auto kAnything = [](const LeaseShare&) { return true; };
const auto kFair = [](const LeaseShare& share) { return share.may_lease(); };

TEST(LeaseShare, AShortSectionIsNotTakenByWhoAsksFirst) {
  const std::vector<double> speeds(3, 100);  // 3 s are ten blocks
  EXPECT_GT(play(speeds, 18, kAnything).idle_s, 2.5);
  EXPECT_LT(play(speeds, 18, kFair).idle_s, 0.5) << "a block takes 0.32 s";
}

TEST(LeaseShare, NobodyWaitsLongForTheLastBlocksOfOthers) {
  const Played fair = play({100, 90, 20}, 200, kFair);
  EXPECT_LT(fair.idle_s, 2.05) << "the floor and a block of the slowest: 8 + 32 batches";
  EXPECT_GE(fair.ahead_s, 2.6) << "seconds ahead while much is left";
  EXPECT_LT(play(std::vector<double>(8, 400), 600, kFair).idle_s, 0.11) << "a block takes 0.08 s";
}

}  // namespace
}  // namespace flux
