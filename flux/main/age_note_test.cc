#include "flux/main/age_note.h"

#include <gtest/gtest.h>

namespace flux {
namespace {

Job job_of(const char* mode, uint32_t batch, uint32_t pull_ahead) {
  Job job;
  job.mode = mode;
  job.data.batch_size = batch;
  job.pull_ahead = pull_ahead;
  return job;
}

TEST(AgeNote, SaysHowOldGradientsOfSeveralWorkersAre) {
  const std::string four = age_note(job_of("async", 1000, 0), 4);
  EXPECT_NE(four.find("4 workers push on their own"), std::string::npos) << four;
  EXPECT_NE(four.find("about 3,000 examples old"), std::string::npos) << four;
  EXPECT_NE(four.find("set data.batch: 250,"), std::string::npos) << four;
  EXPECT_NE(four.find("--staleness 3`"), std::string::npos) << four;
  EXPECT_NE(age_note(job_of("async", 1000, 2), 2).find("5,000 examples"), std::string::npos);
  EXPECT_NE(age_note(job_of("half_async", 100, 0), 200).find("data.batch: 64,"), std::string::npos);
}

TEST(AgeNote, SaysNothingWhereThereIsNothingToSay) {
  EXPECT_EQ(age_note(job_of("async", 1000, 0), 1), "");
  EXPECT_EQ(age_note(job_of("async", 1000, 0), 2), "") << "one batch is not noticed";
  EXPECT_EQ(age_note(job_of("sync", 1000, 0), 16), "");
  EXPECT_EQ(age_note(job_of("async", 250, 0), 4), "") << "what it advised";
  EXPECT_EQ(age_note(job_of("async", 64, 0), 256), "") << "there is nothing to advise";
}

}  // namespace
}  // namespace flux
