// FolderElection on a simulated disk that fails, kills and loses what was not made durable.
#include "flux/election/folder_election.h"

#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "flux/testing/mem_files.h"

namespace flux {
namespace {

struct Life {
  Life(SimWorld* world, MemDisk* disk, uint64_t boot)
      : node(world, "coordinator", boot),
        files(disk, &node, {0.1, 0.1}),
        election(&files, "out", "ctr") {
    election.announce({fmt::format("coordinator.{}", boot), boot, "", ""});
  }
  SimNode node;
  MemFiles files;
  FolderElection election;
  uint64_t term = 0;
};

TEST(FolderElectionSim, TermsRiseWhateverTheDiskDoes) {
  constexpr uint64_t kSeeds = 300;
  uint64_t claimed = 0, died = 0, failed = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    SimWorld world(seed);
    MemDisk disk(&world);
    MemFiles eye(&disk, nullptr, {});
    ASSERT_TRUE(eye.make_folders("out").is_ok());
    std::vector<std::unique_ptr<Life>> lives;
    uint64_t highest = 0;
    for (uint64_t step = 1; step <= 60; ++step) {
      if (lives.empty() || world.random().chance(0.3))
        lives.push_back(std::make_unique<Life>(&world, &disk, step));
      if (world.random().chance(0.1)) disk.power_cut();
      Life& life = *lives[world.random().below(lives.size())];
      if (!life.node.alive()) continue;
      const auto term = life.election.claim_term(0);
      if (term.is_ok() && life.node.alive()) {
        ++claimed;
        EXPECT_GT(term.value(), highest);
        highest = life.term = term.value();
      } else {
        (life.node.alive() ? failed : died) += 1;
      }
      // Nobody but the last may go on; not even it if a claim died half made.
      for (const auto& other : lives) {
        if (other->term == 0 || !other->node.alive()) continue;
        const Status mine = other->election.still_mine(other->term);
        if (mine.is_ok()) {
          EXPECT_EQ(other->term, highest);
        } else {
          EXPECT_EQ(mine.code(), Code::kStale) << mine.message();
        }
      }
      if (term.is_ok() && life.node.alive()) {
        EXPECT_TRUE(life.election.still_mine(highest).is_ok());
      }
    }
  }
  // The faults took place.
  EXPECT_GT(claimed, kSeeds * 5);
  EXPECT_GT(died, kSeeds);
  EXPECT_GT(failed, kSeeds);
}

}  // namespace
}  // namespace flux
