// What a run leaves for people and programs: curve, summary, lock, progress on the screen.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "flux/base/text.h"
#include "flux/main/output_lock.h"
#include "flux/main/progress_view.h"
#include "flux/main/status_text.h"
#include "flux/main/summary.h"
#include "flux/report/curve.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

class Report : public testing::Test {
 protected:
  Report() {
    std::string name = testing::TempDir() + "flux_main_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~Report() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

TEST_F(Report, CurveContinuesWhereTheJobResumes) {
  Curve curve;
  for (uint64_t i = 1; i <= 4; ++i)
    curve.add({i * 100, 0.5 / double(i), 0.5, 0.6 + 0.01 * double(i), 1000.0 * double(i)});
  ASSERT_TRUE(curve.save(at("curve.tsv")).is_ok());
  EXPECT_EQ(read_whole_file(at("curve.tsv"), 4096).value().substr(0, 88),
            "examples\tloss_since\tloss_average\tauc\texamples_per_s\n"
            "100\t0.500000\t0.500000\t0.610000\t1000\n");
  Curve resumed;
  resumed.load(at("curve.tsv"), 250);
  ASSERT_EQ(resumed.rows().size(), 2U);
  EXPECT_EQ(resumed.rows()[1].examples, 200U);
  EXPECT_DOUBLE_EQ(resumed.rows()[1].loss_since, 0.25);
  EXPECT_DOUBLE_EQ(*resumed.rows()[1].auc, 0.62);
  EXPECT_DOUBLE_EQ(resumed.rows()[1].examples_per_s, 2000);
  Curve all;
  all.load(at("curve.tsv"), 400);
  EXPECT_EQ(all.rows().size(), 4U);
  Curve none;  // no AUC is not one of 0.5
  none.add({100, 0.5, 0.5, std::nullopt, 10});
  EXPECT_NE(none.to_svg("no ranking", 0).find("loss since last"), std::string::npos);
  EXPECT_EQ(none.to_svg("no ranking", 0).find("AUC"), std::string::npos);
  ASSERT_TRUE(none.save(at("none.tsv")).is_ok());
  EXPECT_TRUE(read_whole_file(at("none.tsv"), 4096).value().ends_with("\tnull\t10\n"));
  Curve back;
  back.load(at("none.tsv"), 100);
  ASSERT_EQ(back.rows().size(), 1U);
  EXPECT_FALSE(back.rows()[0].auc.has_value());
}

TEST_F(Report, AnOddCurveFileGivesNoRows) {
  Curve curve;
  curve.load(at("absent"), 1000);
  EXPECT_TRUE(curve.rows().empty());
  ASSERT_TRUE(write_file_synced(at("odd"), "\x01\x02 what\nis\tthis\n").is_ok());
  curve.load(at("odd"), 1000);
  EXPECT_TRUE(curve.rows().empty());
}

TEST_F(Report, CurvePictureStandsAlone) {
  Curve curve;
  EXPECT_NE(curve.to_svg("nothing yet", 0).find("</svg>"), std::string::npos);
  curve.add({100, 0.5, 0.5, 0.6, 10});
  curve.add({200, 0.4, 0.45, 0.7, 10});
  const std::string svg = curve.to_svg("my job", 0.77);
  EXPECT_EQ(svg.find("<svg "), 0U);
  EXPECT_NE(svg.find("my job"), std::string::npos);
  EXPECT_NE(svg.find("test AUC 0.77000"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(curve.to_svg("a <b> & c", 0).find("<b>"), std::string::npos) << "text is escaped";
}

Summary summary() {
  Summary s;
  s.job = "a \"b\"";
  s.state = "complete";
  s.examples = 1000;
  s.examples_per_s = 68120.7;
  s.accounting = {1000000, 999990, 0, 10, 7};
  s.model_hash = 0xab;
  return s;
}

TEST_F(Report, SummaryHasTheDocumentedFields) {
  std::ifstream file(FLUX_SOURCE_DIR "/tests/golden/summary_keys.json");
  const auto documented = nlohmann::ordered_json::parse(file);
  const auto json = nlohmann::ordered_json::parse(summary_json(summary()));
  std::vector<std::string> names, expected;
  for (const auto& [name, value] : json.items()) names.push_back(name);
  for (const auto& [name, value] : documented.items()) expected.push_back(name);
  EXPECT_EQ(names, expected);
  EXPECT_EQ(json["job"], "a \"b\"");
  EXPECT_EQ(json["lost"], 10);
  EXPECT_EQ(json["doubled"], 7);
  EXPECT_EQ(json["applied_once"], 999983);
  EXPECT_TRUE(json["auc"].is_null());
  EXPECT_TRUE(json["train_auc"].is_null());
  EXPECT_TRUE(json["train_logloss"].is_null());
  EXPECT_TRUE(json["resumed_from"].is_null());
  EXPECT_EQ(json["model_hash"], "00000000000000ab");
}

TEST_F(Report, AccountingLine) {
  Summary s = summary();
  EXPECT_EQ(accounting_line(s),
            "examples 999,983/1,000,000 applied once · skipped 0 · lost 10 · doubled 7 · 68,120 "
            "examples/s");
  s.auc = 0.779214;
  EXPECT_NE(accounting_line(s).find("test AUC 0.77921 "), std::string::npos);
  EXPECT_GT(peak_rss_bytes(), 1U << 20);
  s.auc.reset();
  s.test.emplace().rows.emplace_back().values.rmse = 2.5;
  EXPECT_NE(accounting_line(s).find(" · test RMSE 2.50000 "), std::string::npos);
  s.test->rows[0].values.rmse.reset();
  s.test->rows[0].values.accuracy = 0.75;
  EXPECT_NE(accounting_line(s).find(" · test accuracy 0.75000 "), std::string::npos);
}

TEST_F(Report, WhatAStoppedRunLeft) {
  Summary s = summary();
  EXPECT_EQ(left_line(s), "nothing was left");
  s.passes_left = 1;
  EXPECT_EQ(left_line(s), "1 pass was not begun");
  s.untrained = 1500;
  s.passes_left = 2;
  EXPECT_EQ(left_line(s), "1,500 examples of the open pass were left, 2 passes were not begun");
  s.passes_left = 0;
  EXPECT_EQ(left_line(s), "1,500 examples of the open pass were left");
}

TEST_F(Report, OneProcessPerOutputFolder) {
  auto first = OutputLock::take(at("new/out"));
  ASSERT_TRUE(first.is_ok()) << first.status().message();
  const auto second = OutputLock::take(at("new/out"));
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().code(), Code::kInvalid);
  EXPECT_NE(second.status().message().find("process " + std::to_string(::getpid())),
            std::string::npos)
      << second.status().message();
  EXPECT_EQ(OutputLock::holder(at("new/out")), std::to_string(::getpid()));
  EXPECT_EQ(OutputLock::holder(at("nowhere")), "");
  EXPECT_FALSE(std::filesystem::exists(at("nowhere")));
  const auto drill = OutputLock::take_for_drill(at("new/out"));  // beside the job, not instead
  ASSERT_TRUE(drill.is_ok());
  const auto other_drill = OutputLock::take_for_drill(at("new/out"));
  EXPECT_EQ(other_drill.status().code(), Code::kInvalid);
  EXPECT_NE(other_drill.status().message().find(std::to_string(::getpid())), std::string::npos);
  EXPECT_TRUE(OutputLock::take(at("other")).is_ok());
  first.value().reset();
  EXPECT_TRUE(OutputLock::take(at("new/out")).is_ok());
}

ProgressPoint progress_of(uint64_t examples, double loss) {
  return {examples, loss, 0.5, 1000 + examples};
}

TEST_F(Report, ProgressRowsAndTheirFigures) {
  Curve curve;
  ProgressView view(ProgressView::Show::kLines, &curve);
  testing::internal::CaptureStdout();
  view.begin(progress_of(0, 0), 5000, 0);
  EXPECT_FALSE(view.due(0, 60 * kSecond)) << "nothing to say";
  view.update(progress_of(100, 60), 2 * kSecond);
  EXPECT_FALSE(view.due(150, 2 * kSecond + 1)) << "too soon";
  view.update(progress_of(150, 70), 2 * kSecond + 1);
  view.update(progress_of(300, 100), 4 * kSecond);
  view.draw_bar(progress_of(300, 100), 4 * kSecond);
  view.finish(progress_of(300, 100), 5 * kSecond);
  view.say("done");
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_EQ(curve.rows().size(), 2U);
  EXPECT_EQ(curve.rows()[0].examples, 1100U);
  EXPECT_DOUBLE_EQ(curve.rows()[0].loss_since, 0.6);
  EXPECT_DOUBLE_EQ(curve.rows()[0].examples_per_s, 50);
  EXPECT_EQ(curve.rows()[1].examples, 1300U);
  EXPECT_DOUBLE_EQ(curve.rows()[1].loss_since, 0.2);
  EXPECT_DOUBLE_EQ(curve.rows()[1].loss_average, 100.0 / 300);
  EXPECT_DOUBLE_EQ(curve.rows()[1].examples_per_s, 100);
  EXPECT_EQ(split(out, '\n').size(), 6U) << out;  // a head of two lines, two rows, "done", the end
  EXPECT_EQ(out.find('\r'), std::string::npos) << "no bar in a pipe";
  EXPECT_EQ(out.find('\033'), std::string::npos);
  EXPECT_NE(out.find("1,300"), std::string::npos);
  EXPECT_NE(out.find(human_seconds(3700 / 100.0)), std::string::npos) << out;
}

TEST_F(Report, TheTableNamesWhatIsTrained) {
  Curve curve;
  for (const bool log_loss : {false, true}) {
    ProgressView view(ProgressView::Show::kLines, &curve, log_loss);
    testing::internal::CaptureStdout();
    view.begin({}, 5000, 0);
    view.update({100, 60, std::nullopt, 100}, kSecond);
    const std::string out = testing::internal::GetCapturedStdout();
    EXPECT_EQ(out.find("log loss") != std::string::npos, log_loss) << out;
    EXPECT_NE(out.find("   0.600000     0.600000            - "), std::string::npos) << out;
    EXPECT_FALSE(curve.rows().back().auc.has_value());
  }
}

TEST_F(Report, EachPhaseHasItsOwnFigures) {
  Curve curve;
  ProgressView view(ProgressView::Show::kLines, &curve);
  testing::internal::CaptureStdout();
  view.begin({}, 5000, 0);
  view.update({100, 0, 0.6, 100, "join", 100, 60}, 2 * kSecond);
  view.update({300, 0, 0.9, 300, "update", 100, 500}, 4 * kSecond);
  view.update({400, 0, 0.8, 400, "update", 200, 700}, 6 * kSecond);
  view.update({500, 0, 0.7, 500, "join", 300, 160}, 8 * kSecond);
  const std::string out = testing::internal::GetCapturedStdout();
  const std::vector<CurveRow>& rows = curve.rows();
  ASSERT_EQ(rows.size(), 4U);
  const double since[] = {0.6, 5, 2, 0.5}, average[] = {0.6, 5, 3.5, 160.0 / 300};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(rows[i].loss_since, since[i]) << i;
    EXPECT_DOUBLE_EQ(rows[i].loss_average, average[i]) << i;
  }
  EXPECT_EQ(rows[1].auc, 0.9);
  EXPECT_DOUBLE_EQ(rows[1].examples_per_s, 100) << "of all that was trained";
  EXPECT_NE(out.find("phase join\n"), std::string::npos);
  EXPECT_NE(out.find("phase update\n"), std::string::npos);
}

// Rows of one second each, with these mean losses.
std::string shown_for(const std::vector<double>& losses) {
  Curve curve;
  ProgressView view(ProgressView::Show::kLines, &curve);
  testing::internal::CaptureStdout();
  view.begin({}, 5000, 0);
  double sum = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    sum += 10 * losses[i];
    view.update(progress_of(10 * (i + 1), sum), static_cast<TimeNs>(i + 1) * kSecond);
  }
  return testing::internal::GetCapturedStdout();
}

TEST_F(Report, DivergenceIsToldFromTheStartOfTheRun) {
  const auto warns = [](const std::vector<double>& losses) {
    return shown_for(losses).find("diverges") != std::string::npos;
  };
  EXPECT_FALSE(warns({6.9, 6.8, 6.5, 6.2})) << "ln(1000) is chance for a softmax over 1,000";
  EXPECT_FALSE(warns({137, 120, 110, 105})) << "a sum over pairs";
  EXPECT_FALSE(warns({1e6, 9e5, 9e5, 8e5})) << "a mean square, or a weighted loss";
  EXPECT_FALSE(warns({0.7, 4, 0.6, 0.6})) << "one odd stretch";
  EXPECT_TRUE(warns({0.7, 4, 5, 6}));
  EXPECT_TRUE(warns({1e6, 1e8, 1e9, 1e10}));
  EXPECT_TRUE(warns({0.7, INFINITY}));
}

// As recorded: after the loss of two servers the job went back, and trained some of it twice.
TEST_F(Report, RepeatsAreNoProgress) {
  Curve curve;
  ProgressView view(ProgressView::Show::kLines, &curve);
  testing::internal::CaptureStdout();
  view.begin({}, 1000, 0);
  view.update({900, 90, 0.5, 900}, 9 * kSecond);
  view.update({1000, 100, 0.5, 500}, 10 * kSecond);  // back at 400, and 100 of it again
  view.update({1600, 160, 0.5, 1100}, 12 * kSecond);
  view.finish({1600, 160, 0.5, 1100}, 13 * kSecond);
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_EQ(curve.rows().size(), 3U);
  EXPECT_EQ(curve.rows()[1].examples, 500U);
  EXPECT_DOUBLE_EQ(curve.rows()[1].examples_per_s, 100);
  EXPECT_NE(out.find(human_seconds(5)), std::string::npos) << out;  // 500 left at 100 a second
  EXPECT_EQ(curve.rows()[2].examples, 1000U) << "never beyond the total";
}

// The last batches may be known to be applied after they are known to be trained.
TEST_F(Report, TheLastRowHasEverything) {
  Curve curve;
  ProgressView view(ProgressView::Show::kLines, &curve);
  testing::internal::CaptureStdout();
  view.begin({}, 1000, 0);
  view.update({1000, 200, 0.5, 900}, 10 * kSecond);
  view.finish({1000, 200, 0.5, 1000}, 11 * kSecond);
  testing::internal::GetCapturedStdout();
  ASSERT_EQ(curve.rows().size(), 2U);
  EXPECT_EQ(curve.rows()[1].examples, 1000U);
  EXPECT_DOUBLE_EQ(curve.rows()[1].loss_since, 0.2);
}

TEST_F(Report, TheBarIsClearedBeforeALine) {
  Curve curve;
  ProgressView view(ProgressView::Show::kBar, &curve);
  testing::internal::CaptureStdout();
  view.begin({}, 100, 0);
  view.draw_bar({25, 0, 0.5, 25}, kSecond);
  view.say("hello");
  view.draw_bar({500, 0, 0.5, 500}, kSecond);
  view.finish({}, kSecond);
  const std::string out = testing::internal::GetCapturedStdout();
  EXPECT_NE(out.find("[##########..............................]  25.0%"), std::string::npos);
  EXPECT_NE(out.find("\r\033[Khello\n"), std::string::npos);
  EXPECT_NE(out.find("100.0%"), std::string::npos) << "never beyond";
  EXPECT_TRUE(out.ends_with("\r\033[K"));
}

TEST(StatusText, SaysWhichServerHasTooMuch) {
  JobStatus status;
  status.servers.resize(2);
  status.servers[0].name = "server-0";
  status.servers[0].keys_per_s = 1500;
  status.servers[1].name = "server-1";
  status.servers[1].keys_per_s = 500;
  EXPECT_NE(status_text(status).find("· 1,500 keys/s (50 % above the mean) · seen"),
            std::string::npos)
      << status_text(status);
  EXPECT_NE(status_text(status).find("· 500 keys/s · seen"), std::string::npos);
  EXPECT_EQ(status_text(status).find("hottest"), std::string::npos) << "nobody said";
  status.hottest_shards = {{7, "server-0", 900}, {2, "server-1", 400}};
  status.rebalanced = 1;
  EXPECT_NE(status_text(status).find("hottest shards: 7 on server-0 (900 keys/s), 2 on server-1 "
                                     "(400 keys/s) · moved for their load: 1\n"),
            std::string::npos)
      << status_text(status);
}

TEST(StatusText, SaysWhoIsMissingAndWhatHasNoBackup) {
  JobStatus status;
  status.shards = 10;
  status.replicas = 2;
  status.servers.resize(2);
  status.workers.resize(3);
  status.wanted_servers = 2;
  status.wanted_workers = 3;
  EXPECT_NE(status_text(status).find("2 server(s) · 3 worker(s) · 10 shards, replicas 2\n"),
            std::string::npos)
      << status_text(status);
  status.servers[1].draining = true;
  status.wanted_servers = 3;
  status.workers.pop_back();
  status.shards_without_backup = 4;
  status.shards_unserved = 1;
  EXPECT_NE(status_text(status).find("1 server(s) of 3 wanted and 1 that drain · "
                                     "2 worker(s) of 3 wanted · 10 shards, replicas 2, "
                                     "4 without a backup, 1 not served\n"),
            std::string::npos)
      << status_text(status);
  status.wanted_servers = status.wanted_workers = -1;
  EXPECT_EQ(status_text(status).find("wanted"), std::string::npos) << "nobody said";
}

}  // namespace
}  // namespace flux
