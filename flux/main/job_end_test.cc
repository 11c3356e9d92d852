#include "flux/main/job_end.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

class JobEndFile : public testing::Test {
 protected:
  JobEndFile() { std::filesystem::create_directories(output_); }
  ~JobEndFile() override { std::filesystem::remove_all(output_); }
  void write_summary(uint64_t lost) const {
    Summary summary;
    summary.state = "complete";
    summary.accounting.expected = 1000;
    summary.accounting.applied = 1000 - lost;
    summary.accounting.lost = lost;
    summary.auc = 0.75;
    ASSERT_TRUE(
        write_file_atomic(join_path(output_, "summary.json"), summary_json(summary)).is_ok());
  }
  const std::string output_ = testing::TempDir() + "job_end_" + std::to_string(::getpid());
};

TEST_F(JobEndFile, IsReadAsItWasLeft) {
  EXPECT_EQ(read_end(output_).status().code(), Code::kNotFound);
  const Status why = error(Code::kIo, "no space left");
  ASSERT_TRUE(leave_end(output_, end_of(why, "flux run job.yaml")).is_ok());
  const JobEnd end = read_end(output_).value();
  EXPECT_EQ(end.state, "failed");
  EXPECT_EQ(end_text("out", output_, end),
            "out failed: no space left\n"
            "to go on from its last checkpoint: flux run job.yaml\n");
  EXPECT_EQ(end_status(output_, end).message(), "the job failed: no space left");
  ASSERT_TRUE(forget_end(output_).is_ok());
  EXPECT_EQ(read_end(output_).status().code(), Code::kNotFound);
}

TEST_F(JobEndFile, CompleteOnesShowTheirFigures) {
  write_summary(0);
  const JobEnd end{"complete", "", "", "flux run job.yaml"};
  EXPECT_EQ(end_text("out", output_, end),
            "out is complete\n"
            "examples 1,000/1,000 applied once · skipped 0 · lost 0 · doubled 0 · test AUC "
            "0.75000\n");
  EXPECT_TRUE(end_status(output_, end).is_ok());
  write_summary(3);
  EXPECT_EQ(end_status(output_, end).code(), Code::kUnavailable);
}

TEST_F(JobEndFile, WhatSaysNothingIsRefused) {
  for (const char* text : {"", "[]", "{\"state\": 3}", "{\"state\": \"training\"}"}) {
    ASSERT_TRUE(write_file_atomic(join_path(output_, "end.json"), text).is_ok());
    EXPECT_EQ(read_end(output_).status().code(), Code::kCorrupt) << text;
  }
}

TEST_F(JobEndFile, StoppedOnesSayByWhat) {
  EXPECT_EQ(end_phrase({"stopped", "", "", ""}), "was stopped");
  EXPECT_EQ(end_phrase({"stopped", "", "max_examples", ""}), "was stopped by max_examples");
}

}  // namespace
}  // namespace flux
