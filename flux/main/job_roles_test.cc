// Each role's view of a job that travelled, compared with what the job file itself gives.
#include "flux/main/job_roles.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "flux/job/job.h"

namespace flux {
namespace {

const std::string kExample = std::string(FLUX_SOURCE_DIR) + "/examples/ctr_dnn/job.yaml";

TEST(JobRoles, TheSpecMakesTheSameModelAsTheFile) {
  const std::vector<std::string> sets = {"shards=8", "output=somewhere", "tables.embedding.dim=4"};
  const auto spec = read_spec(kExample, sets);
  ASSERT_TRUE(spec.is_ok()) << spec.status().message();
  const auto role = open_role_job(spec.value());
  ASSERT_TRUE(role.is_ok()) << role.status().message();
  std::vector<Override> overrides;
  for (const std::string& set : sets) overrides.push_back(parse_override(set).value());
  const auto job = load_job(kExample, overrides);
  ASSERT_TRUE(job.is_ok());
  const auto straight = open_role_job(job.value());
  ASSERT_TRUE(straight.is_ok()) << straight.status().message();
  EXPECT_EQ(describe_model(role.value()), describe_model(straight.value()));
  EXPECT_EQ(role.value().all_shards, straight.value().all_shards);
  auto whole = Server::create(server_options(straight.value(), 7, {1, 1}).value());
  ASSERT_TRUE(whole.is_ok());
  whole.value()->init_dense(straight.value().initial_parameters());

  OpenJob open;
  open.job = spec.value();
  open.incarnation = 7;
  for (ShardId shard = 0; shard < role.value().all_shards; ++shard)
    open.places.shards.push_back({shard, {1, 1}, ReplicaRole::kPrimary, kNoServer, kAnyOp});
  const auto server = make_server(open);
  ASSERT_TRUE(server.is_ok()) << server.status().message();
  EXPECT_EQ(server.value()->content_hash(), whole.value()->content_hash());
}

TEST(JobRoles, ABadSpecIsRefusedWithTheFilesName) {
  EXPECT_EQ(read_spec("no/such/job.yaml", {}).status().code(), Code::kNotFound);
  const std::vector<std::string> sets = {"no_such_field=1"};
  const auto spec = read_spec(kExample, sets);
  ASSERT_TRUE(spec.is_ok());
  const auto role = open_role_job(spec.value());
  ASSERT_FALSE(role.is_ok());
  EXPECT_NE(role.status().message().find("no_such_field"), std::string::npos);
}

TEST(JobRoles, APlanCutsTheDataOfTheCurrentFolderByAbsolutePaths) {
  std::string folder = (std::filesystem::temp_directory_path() / "flux_roles.XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  std::string line = "1";
  for (int i = 0; i < 13; ++i) line += "\t" + std::to_string(i);
  for (int i = 0; i < 26; ++i) line += "\t0000000" + std::to_string(i % 10);
  std::ofstream("train.tsv") << line << "\n" << line << "\n";

  const std::vector<std::string> sets = {"data.train=train.tsv", "data.test=train.tsv",
                                         "output=out"};
  auto spec = read_spec(kExample, sets);
  ASSERT_TRUE(spec.is_ok());
  auto job = parse_spec(spec.value());
  ASSERT_TRUE(job.is_ok()) << job.status().message();
  ASSERT_TRUE(absolute_paths(&job.value()).is_ok());
  const auto role = open_role_job(std::move(job).value());
  ASSERT_TRUE(role.is_ok());
  const auto plan = make_plan(role.value(), spec.value(), 1);
  ASSERT_TRUE(plan.is_ok());
  std::filesystem::current_path(before);  // the plan must not depend on it any more

  EXPECT_EQ(plan.value().output, folder + "/out");
  const auto cut = plan.value().scan(0, nullptr);
  ASSERT_TRUE(cut.is_ok()) << cut.status().message();
  EXPECT_EQ(cut.value().records(), 2U);
  EXPECT_EQ(cut.value().files[0].path, folder + "/train.tsv");
  const auto notes = plan.value().check_frozen(0, cut.value());
  ASSERT_TRUE(notes.is_ok()) << notes.status().message();
  EXPECT_EQ(notes.value(), "");
  EXPECT_TRUE(plan.value().scan_test(nullptr).is_ok());

  Geometry other = cut.value();
  other.batch_size = 7;
  EXPECT_EQ(plan.value().check_frozen(0, other).status().code(), Code::kInvalid);

  std::filesystem::rename(folder + "/train.tsv", folder + "/away.tsv");
  EXPECT_EQ(plan.value().check_frozen(0, cut.value()).status().message(),
            folder +
                "/train.tsv: is gone, but pass pass-0 was begun with it by an earlier run and "
                "is not closed; the job names " +
                folder +
                "/train.tsv now\n"
                "put the file back until the pass is closed, or start over with --fresh");
  std::filesystem::remove_all(folder);
}

TEST(JobRoles, CheckpointsOfAClusterAreNeverOld) {
  Job job;
  EXPECT_EQ(checkpoint_every_s(job, false), 60);
  EXPECT_LT(checkpoint_every_s(job, true), 10);
  job.checkpoint_every_s = 0.0F;  // only at the end of a pass
  EXPECT_EQ(checkpoint_every_s(job, true), 0);
  EXPECT_EQ(checkpoint_every_s(job, false), 0);
}

}  // namespace
}  // namespace flux
