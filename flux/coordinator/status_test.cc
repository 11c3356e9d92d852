// JobStatus for programs: all keys (golden file), there and back, metrics that parse.
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "flux/coordinator/prometheus_text.h"
#include "flux/coordinator/status_json.h"

namespace flux {
namespace {

void add_servers(JobStatus* s) {
  ServerStatus v;
  v.id = 1;
  v.name = "server-1";
  v.host = "beta";
  v.address = "tcp:10.0.0.2:7000";
  v.pid = 77;
  v.seen_s_ago = 0.5;
  v.shards = 128;
  v.backups = 127;
  v.draining = true;
  v.rss_bytes = 4096;
  v.keys_per_s = 70000;
  s->servers = {v};
  s->shards = 264;
  s->replicas = 2;
  s->shards_without_backup = 9;
  s->shards_unserved = 8;
  s->moves = 7;
  s->epoch_changes = 6;
  s->servers_lost = 5;
  s->replicas_differed = 7;
  s->failovers = 4;
  s->failover_max_s = 0.75;
  s->latest_failovers = {{"lost server-0: its connection is closed", 132, 0.25}};
  s->hottest_shards = {{12, "server-1", 30000}};
  s->rebalanced = 3;
  s->taken_over = true;
  s->wanted_workers = 3;
  s->wanted_servers = 2;
}

JobStatus full_status() {
  JobStatus s;
  s.job = "ctr \"one\"\n\\";
  s.state = "training";
  s.mode = "async";
  s.up_s = 12.5;
  s.incarnation = 0xfedcba9876543210ULL;
  s.epoch = {3, 7};
  s.pass = 1;
  s.passes = 4;
  s.pass_name = "monday";
  s.phase_name = "update";
  s.section = 1;
  s.sections = 2;
  s.todo = 5;
  s.pending = 6;
  s.applied = 7;
  s.done = 8;
  s.examples = 1000000;
  s.examples_total = 4000000;
  s.examples_run = 900000;
  s.examples_applied = 890000;
  s.examples_per_s = 250000;
  s.train_auc = 0.75;
  s.train_logloss = 0.5;
  s.auc = 0.8;
  s.logloss = 0.4;
  s.quality = "suspect";
  s.warnings = {{"dead_units", "update", "h1", "layer h1: 60 of 64 units are dead", 5000, true}};
  s.last_checkpoint = "out/checkpoints/00000012";
  s.checkpoint_s_ago = 3;
  s.workers_lost = 1;
  s.blocks_reissued = 2;
  s.batches_skipped = 3;
  s.duplicates = 4;
  s.push_age = {1000, 15000, 24000, 31000};
  s.error = "none";
  WorkerStatus w;
  w.id = 9;
  w.name = "worker-0";
  w.host = "alpha";
  w.pid = 1234;
  w.threads = 2;
  w.seen_s_ago = 0.25;
  w.examples_per_s = 125000;
  w.blocks = 2;
  w.report.examples = 500000;
  w.report.batches = 500;
  w.report.loss_sum = 250000;
  w.report.train_auc = 0.75;
  w.report.duplicates = 1;
  w.report.resends = 2;
  w.report.bytes_sent = 3;
  w.report.bytes_received = 4;
  w.report.cpu_s = 5.5;
  w.report.rss_bytes = 6;
  w.report.stage_ns = {1, 2, 3, 4, 5, 6};
  w.report.waits = "pull from server 1 for 0.3 s";
  s.workers = {w};
  add_servers(&s);
  s.waits = {{"coordinator", "for 1 more server to join", 1.5, 28.5}};
  return s;
}

std::string golden(const char* name) {
  std::ifstream file(std::string(FLUX_SOURCE_DIR) + "/tests/golden/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(StatusJson, IsTheGoldenFile) {
  EXPECT_EQ(status_json(full_status()), golden("status.json"));
}

TEST(StatusJson, ComesBackAsItWas) {
  const std::string text = status_json(full_status());
  const auto back = parse_status_json(text);
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(status_json(back.value()), text);
  EXPECT_EQ(back.value().incarnation, 0xfedcba9876543210ULL);
  const auto empty = parse_status_json(status_json(JobStatus()));
  ASSERT_TRUE(empty.is_ok()) << empty.status().message();
  EXPECT_FALSE(empty.value().auc.has_value());
}

TEST(StatusJson, OddAnswersAreRefused) {
  for (const char* text : {"", "[]", "null", "{", "<html>", "{\"job\": 3}", "{\"workers\": 3}",
                           "{\"workers\": [3]}", "{\"incarnation\": \"x\"}", "{\"pass\": \"a\"}"}) {
    const auto parsed = parse_status_json(text);
    EXPECT_EQ(parsed.status().code(), Code::kCorrupt) << text;
  }
}

TEST(StatusJson, NamesThatAreNoTextDoNotThrow) {
  JobStatus status;
  status.job = "a\xff\xfe";
  EXPECT_NE(status_json(status).find("\"job\""), std::string::npos);
}

// Each line is a comment or "name{labels} number", each name has its HELP and TYPE before it, and
// no name is announced twice.
TEST(PrometheusText, EveryMetricIsAnnouncedOnceAndExplained) {
  std::istringstream lines(prometheus_text(full_status()));
  std::set<std::string> helped, typed, used;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first;
    if (first == "#") {
      words >> second >> third;
      ASSERT_TRUE(second == "HELP" || second == "TYPE") << line;
      EXPECT_TRUE((second == "HELP" ? helped : typed).insert(third).second) << line;
      EXPECT_TRUE(second == "TYPE" || line.back() == '.') << line;
      continue;
    }
    const size_t brace = line.find('{'), end = line.rfind("} ");
    ASSERT_NE(brace, std::string::npos) << line;
    ASSERT_NE(end, std::string::npos) << line;
    const std::string name = line.substr(0, brace);
    EXPECT_TRUE(name.starts_with("flux_")) << line;
    EXPECT_TRUE(helped.count(name) == 1 && typed.count(name) == 1) << line;
    used.insert(name);
    size_t taken = 0;
    const std::string number = line.substr(end + 2);
    std::stod(number, &taken);
    EXPECT_EQ(taken, number.size()) << line;
    EXPECT_NE(line.find("job=\"ctr \\\"one\\\"\\n\\\\\""), std::string::npos) << line;
  }
  EXPECT_EQ(used, helped);
  for (const char* name : {"flux_server_keys_per_second", "flux_hottest_shard_keys_per_second",
                           "flux_shards_rebalanced_total"})
    EXPECT_TRUE(used.contains(name)) << name;
  EXPECT_GE(used.size(), 30U);
}

}  // namespace
}  // namespace flux
