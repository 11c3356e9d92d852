// What is told about a job before it is trained, and about the commands themselves.
#include <filesystem>

#include <gtest/gtest.h>
#include <zlib.h>

#include "flux/main/completion.h"
#include "flux/main/forecast.h"
#include "flux/main/manual.h"
#include "flux/main/sample_text.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

class SampleText : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  std::string put(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(write_file_atomic(path, text).is_ok());
    return path;
  }
  std::string sampled() const { return read_whole_file(folder_ + "/out", 1 << 20).value(); }

  const std::string folder_ = testing::TempDir() + "/sample_text";
};

std::string lines(int from, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += fmt::format("line {:05}\n", from + i);
  return text;
}

TEST_F(SampleText, EverythingWhenThereIsRoom) {
  const std::vector<std::string> files = {put("a", lines(0, 3)), put("b", "no newline")};
  const auto sample = sample_text(files, {}, false, 100, folder_ + "/out");
  ASSERT_TRUE(sample.is_ok()) << sample.status().message();
  EXPECT_EQ(sampled(), lines(0, 3) + "no newline\n");
  EXPECT_TRUE(sample.value().whole);
  EXPECT_EQ(sample.value().lines, 4U);
  EXPECT_EQ(sample.value().lines_in_all, 4U);
}

TEST_F(SampleText, TheRestIsEstimated) {
  std::vector<std::string> files;
  for (int i = 0; i < 40; ++i) files.push_back(put(fmt::format("f{:02}", i), lines(i * 100, 100)));
  const auto sample = sample_text(files, {}, false, 64, folder_ + "/out");
  ASSERT_TRUE(sample.is_ok());
  EXPECT_EQ(sample.value().lines, 64U);
  EXPECT_EQ(sample.value().lines_in_all, 4000U) << "lines of one length";
  EXPECT_FALSE(sample.value().whole);
  EXPECT_EQ(sampled().substr(0, 44), lines(0, 4)) << "four of each of 16 files";
  EXPECT_EQ(sampled().substr(44, 44), lines(200, 4));
}

TEST_F(SampleText, MessagesNameTheFilesOfTheJob) {
  const std::string mark = "\xef\xbb\xbf";
  const std::vector<std::string> files = {put("a", mark + "head\n" + lines(0, 3)),
                                          put("b", mark + "head\n" + lines(3, 9))};
  const std::string out = folder_ + "/out";
  const auto sample = sample_text(files, {}, true, 8, out);
  ASSERT_TRUE(sample.is_ok()) << sample.status().message();
  EXPECT_EQ(sampled(), "head\n" + lines(0, 8));
  const auto said = [&](const std::string& message) {
    return in_own_files(sample.value(), out, message);
  };
  EXPECT_EQ(said(out + ":2:7: why"), files[0] + ":2:7: why");
  EXPECT_EQ(said("x: " + out + ":5:1: why\nand " + out + ":9:1: no"),
            "x: " + files[1] + ":2:1: why\nand " + files[1] + ":6:1: no");
  EXPECT_EQ(said(out + ":20..30 (records 2 to 3)"),
            "a sample of " + files[0] + " and 1 more file(s):20..30 (records 2 to 3)");
  EXPECT_EQ(said("another: why"), "another: why");
}

TEST_F(SampleText, GzipAndLongLines) {
  const std::string path = folder_ + "/a.gz";
  const std::string text = std::string(100000, 'x') + "\n" + lines(0, 2);
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(file);
  const auto sample = sample_text(std::vector{path}, {}, false, 10, folder_ + "/out");
  ASSERT_TRUE(sample.is_ok()) << sample.status().message();
  EXPECT_EQ(sample.value().lines, 3U);
  EXPECT_EQ(sampled(), text);
}

TEST_F(SampleText, AnAbsentFileIsNamed) {
  const auto sample =
      sample_text(std::vector{folder_ + "/absent"}, {}, false, 10, folder_ + "/out");
  EXPECT_EQ(sample.status().code(), Code::kNotFound);
  EXPECT_NE(sample.status().message().find("absent"), std::string::npos);
}

TEST(IdGrowth, IsAPowerOfTheExamples) {
  EXPECT_EQ((IdGrowth{1000, 50, 50}.at(1'000'000)), 50U) << "no new ids";
  EXPECT_EQ((IdGrowth{1000, 500, 1000}.at(1'000'000)), 1'000'000U) << "a new id per example";
  const IdGrowth root{100, 100, 141};  // as the square root, nearly
  EXPECT_NEAR(root.power(), 0.5, 0.01);
  EXPECT_NEAR(static_cast<double>(root.at(10'000)), 1410, 30);
  EXPECT_EQ((IdGrowth{0, 0, 0}.at(10)), 0U);
}

TEST(Forecast, AsText) {
  Forecast f;
  f.job = "ctr";
  f.passes = 1;
  f.repeats = 2;
  f.examples = 1'000'000;
  f.file_bytes = 3 << 20;
  f.batch = 1000;
  f.batches = 1000;
  f.blocks = 64;
  f.ids = {64000, 1000, 1414};
  f.rows = 5000;
  f.row_bytes = 1 << 20;
  f.dense_bytes = 1 << 20;
  f.dense_parameters = 1234;
  f.worker_bytes = 10 << 20;
  f.trial_examples = 64000;
  f.examples_per_s = 20000;
  f.threads = 2;
  EXPECT_EQ(forecast_text(f),
            "job ctr: a dry run, nothing is kept\n"
            "data    about 1,000,000 examples (3.0 MiB) in 1 pass; about 1,000 batches of 1000 in "
            "about 64 blocks, each trained 2 times\n"
            "model   1,234 dense parameters; about 5,000 rows over all tables\n"
            "        (1,414 ids in 64,000 examples; their number grows as examples^0.50)\n"
            "memory  one process: about 12.0 MiB\n"
            "        as a cluster: servers together about 4.0 MiB (2 replicas), each worker about "
            "10.0 MiB\n"
            "time    about 1m40s: 20,000 examples/s with 2 threads, measured over 64,000 "
            "examples\n");
}

std::vector<CommandEntry> small_table() {
  return {{{}, "a tool", {{"--version", "", "say which", false, false, false}}, {"run", "data"}},
          {{"run"},
           "train: it's good",
           {{"job", "TEXT", "the file", true, true, false},
            {"--set", "FIELD=VALUE", ".set a field", false, false, true}},
           {}},
          {{"data"}, "make data", {}, {"gen"}},
          {{"data", "gen"}, "generate", {{"--out", "FILE", "where", false, true, false}}, {}}};
}

TEST(Completion, OffersWhatAValueMayBe) {
  const std::vector<CommandEntry> table = {
      {{}, "a tool", {}, {"eval", "models"}},
      {{"eval"}, "look", {{"--which", "newest|best|PATH", "one", false, false, false}}, {}},
      {{"models"}, "list", {{"name", "lr|fm", "the one", true, false, false}}, {}}};
  const std::string bash = completion_script("bash", table).value();
  EXPECT_NE(bash.find("' eval --which') list='newest best' ;;"), std::string::npos) << bash;
  EXPECT_NE(bash.find("' models') list='lr fm' ;;"), std::string::npos) << bash;
  const std::string zsh = completion_script("zsh", table).value();
  EXPECT_NE(zsh.find("(' eval --which') items=(newest best) ;;"), std::string::npos) << zsh;
  EXPECT_NE(zsh.find("(' models') items=('lr:the one' 'fm:the one' )"), std::string::npos) << zsh;
  const std::string fish = completion_script("fish", table).value();
  EXPECT_NE(fish.find("-l which -r -a 'newest best' -d 'one'"), std::string::npos) << fish;
  EXPECT_NE(fish.find("-n '__fish_seen_subcommand_from models' -a 'lr fm' -d 'the one'"),
            std::string::npos)
      << fish;
}

TEST(Completion, KnowsEveryCommand) {
  const auto table = small_table();
  const std::string bash = completion_script("bash", table).value();
  EXPECT_NE(bash.find("' run'|' data'|' data gen'"), std::string::npos) << bash;
  EXPECT_NE(bash.find("' data gen') list='--out'"), std::string::npos) << bash;
  const std::string zsh = completion_script("zsh", table).value();
  EXPECT_NE(zsh.find("'run:train\\: it'\\''s good'"), std::string::npos) << zsh;
  const std::string fish = completion_script("fish", table).value();
  EXPECT_NE(fish.find("-n '__fish_seen_subcommand_from data; and __fish_seen_subcommand_from gen' "
                      "-l out -r -d 'where'"),
            std::string::npos)
      << fish;
  EXPECT_NE(fish.find("-n '__fish_use_subcommand' -f -a run"), std::string::npos) << fish;
  EXPECT_EQ(completion_script("tcsh", table).status().code(), Code::kInvalid);
}

TEST(Manual, IsAPage) {
  const auto table = small_table();
  EXPECT_EQ(man_page("run", "1.2", table).value(),
            ".TH FLUX-RUN 1 \"\" \"flux 1.2\" \"flux\"\n"
            ".SH NAME\nflux\\-run \\- train: it's good\n"
            ".SH SYNOPSIS\n.B flux run\n.I JOB\n[\\fIOPTIONS\\fR]\n"
            ".SH OPTIONS\n"
            ".TP\n\\fIJOB\\fR\nthe file.\n"
            ".TP\n\\fB\\-\\-set\\fR \\fIFIELD=VALUE\\fR\n\\&.set a field. May be given several "
            "times.\n"
            ".SH EXIT STATUS\n0: done; 2: bad input; 1: anything else; 130: stopped, to be gone "
            "on with.\n"
            ".SH SEE ALSO\n.BR flux (1)\n");
  EXPECT_NE(man_page("", "1", table).value().find("\\fBdata gen\\fR\ngenerate."),
            std::string::npos);
  const std::string group = man_page("data", "1", table).value();
  EXPECT_NE(group.find(".SH COMMANDS\n.TP\n\\fBdata gen\\fR\ngenerate."), std::string::npos)
      << group;
  EXPECT_EQ(group.find("\\fBrun\\fR"), std::string::npos) << "only its own";
  EXPECT_NE(man_page("data gen", "1", table).value().find(".BI \\-\\-out \" FILE\""),
            std::string::npos);
  EXPECT_EQ(man_page("rum", "1", table).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace flux
