// A coordinator that opens the job's folder: what it cannot read is no reason to begin anew.
#include <fstream>

#include "flux/testing/job_master_fixture.h"

namespace flux {
namespace {

class JobOpeningTest : public JobMasterTest {
 protected:
  // A checkpoint whose manifest is a link to itself: it is there, but nobody can look at it.
  void make_unreadable_checkpoint() {
    std::filesystem::create_directories(checkpoint_);
    std::ofstream(checkpoint_ + "/shard-00000") << "rows";
    std::filesystem::create_symlink(checkpoint_ + "/manifest.json", checkpoint_ + "/manifest.json");
  }
  std::string checkpoint_ = plan_.output + "/checkpoints/000001";
};

TEST_F(JobOpeningTest, AnUnreadableCheckpointIsNoFreshStart) {
  make_unreadable_checkpoint();
  begin();
  ASSERT_TRUE(outcome_) << master_->status().state << "\n" << said_;
  EXPECT_FALSE(outcome_->status.is_ok());
  EXPECT_NE(outcome_->status.message().find("manifest.json"), std::string::npos)
      << outcome_->status.message();
  EXPECT_TRUE(std::filesystem::exists(checkpoint_ + "/shard-00000")) << "it is no leftover";
}

TEST_F(JobOpeningTest, AFolderOfCheckpointsThatCannotBeListedIsNoFreshStart) {
  std::ofstream(plan_.output + "/checkpoints") << "no folder";
  begin();
  ASSERT_TRUE(outcome_) << master_->status().state << "\n" << said_;
  EXPECT_FALSE(outcome_->status.is_ok());
}

}  // namespace
}  // namespace flux
