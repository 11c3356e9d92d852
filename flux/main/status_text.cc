#include "flux/main/status_text.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "flux/base/text.h"

namespace flux {
namespace {

uint64_t whole(double value) {
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

std::string progress_line(const JobStatus& s) {
  const uint64_t applied =  // each once: repeats after a loss are no progress
      s.examples_total > 0 ? std::min(s.examples_applied, s.examples_total) : s.examples_applied;
  std::string line = fmt::format("examples {}", with_commas(applied));
  if (s.examples_total > 0)
    line +=
        fmt::format(" of {} ({:.1f} %)", with_commas(s.examples_total),
                    100.0 * static_cast<double>(applied) / static_cast<double>(s.examples_total));
  line += fmt::format(" · {} examples/s", with_commas(whole(s.examples_per_s)));
  if (s.examples_per_s > 0 && s.examples_total > applied)
    line += fmt::format(
        " · {} left",
        human_seconds(static_cast<double>(s.examples_total - applied) / s.examples_per_s));
  return line;
}

// Before training nothing is known of it: the figures would all be 0.
bool before_training(const JobStatus& s) {
  return s.examples_total == 0 &&
         (s.state == "starting" || s.state == "loading" || s.state == "reading");
}

std::string quality_line(const JobStatus& s) {
  std::string line = s.phase_name.empty() ? "" : "phase " + s.phase_name + ": ";
  if (s.train_auc) line += fmt::format("train AUC {:.5f}, ", *s.train_auc);
  line += fmt::format("loss {:.5f}", s.train_logloss);
  if (s.auc) line += fmt::format(" · test AUC {:.5f}", *s.auc);
  if (s.logloss) line += fmt::format(", log loss {:.5f}", *s.logloss);
  return line;
}

std::string losses_line(const JobStatus& s) {
  std::string line =
      s.last_checkpoint.empty() ? "no checkpoint yet" : "checkpoint " + s.last_checkpoint;
  if (s.checkpoint_s_ago >= 0) line += fmt::format(", {} ago", human_seconds(s.checkpoint_s_ago));
  return line + fmt::format(
                    " · workers lost {} · blocks leased again {} · batches skipped {} · "
                    "duplicates refused {}",
                    s.workers_lost, s.blocks_reissued, s.batches_skipped, s.duplicates);
}

std::string age_line(const PushAgeStatus& age) {
  return fmt::format("age of gradients: p50 {} · p99 {} · max {} examples applied since their pull",
                     with_commas(age.p50), with_commas(age.p99), with_commas(age.max));
}

std::string present(const char* what, size_t here, int64_t wanted) {
  const bool all = wanted < 0 || static_cast<int64_t>(here) == wanted;
  return fmt::format("{} {}{}", here, what, all ? "" : fmt::format(" of {} wanted", wanted));
}

std::string roles_line(const JobStatus& s) {
  const auto stay = std::count_if(s.servers.begin(), s.servers.end(),
                                  [](const ServerStatus& v) { return !v.draining; });
  std::string line = present("server(s)", static_cast<size_t>(stay), s.wanted_servers);
  if (static_cast<size_t>(stay) < s.servers.size())
    line += fmt::format(" and {} that drain", s.servers.size() - static_cast<size_t>(stay));
  line += " · " + present("worker(s)", s.workers.size(), s.wanted_workers);
  line += fmt::format(" · {} shards, replicas {}", s.shards, s.replicas);
  if (s.shards_without_backup > 0)
    line += fmt::format(", {} without a backup", s.shards_without_backup);
  if (s.shards_unserved > 0) line += fmt::format(", {} not served", s.shards_unserved);
  if (s.moves > 0) line += fmt::format(", {} on the move", s.moves);
  return line;
}

// Of what a server has to do; little is not said.
std::string above_mean(const JobStatus& s, const ServerStatus& server) {
  constexpr double kWorthSaying = 10;
  double sum = 0;
  for (const ServerStatus& one : s.servers) sum += static_cast<double>(one.keys_per_s);
  if (sum <= 0 || s.servers.size() < 2) return "";
  const double mean = sum / static_cast<double>(s.servers.size());
  const double more = 100 * (static_cast<double>(server.keys_per_s) / mean - 1);
  return more < kWorthSaying ? "" : fmt::format(" ({:.0f} % above the mean)", more);
}

std::string hottest_line(const JobStatus& s) {
  std::string line = "hottest shards:";
  for (const HotShard& hot : s.hottest_shards)
    line += fmt::format("{} {} on {} ({} keys/s)", &hot == s.hottest_shards.data() ? "" : ",",
                        hot.shard, hot.server, with_commas(hot.keys_per_s));
  return line + fmt::format(" · moved for their load: {}", s.rebalanced);
}

std::string wait_line(const WaitStatus& wait) {
  std::string line =
      fmt::format("  {} waits {}, for {}", wait.who, wait.what, human_seconds(wait.since_s));
  if (wait.until_s >= 0)
    return line + fmt::format(", at most {} more", human_seconds(wait.until_s));
  return line + ", tried again without end";
}

}  // namespace

std::string status_text(const JobStatus& s) {
  const bool opening = before_training(s);
  std::string text =
      fmt::format("job {} · {} · {} · up {}\n", s.job,
                  opening && s.taken_over ? "taking over" : s.state, s.mode, human_seconds(s.up_s));
  const auto add = [&](const std::string& line) { text += line + "\n"; };
  if (!s.error.empty()) add("failed: " + s.error);
  if (opening && s.taken_over)
    add("the coordinator is a new one: servers tell it what is applied, training goes on "
        "meanwhile");
  if (s.passes > 0 && !opening)
    add(fmt::format(
        "pass {} ({} of {}), section {} of {} · blocks: {} to do, {} leased, {} applied, {} safe",
        s.pass_name, s.pass + 1, s.passes, s.section + 1, s.sections, s.todo, s.pending, s.applied,
        s.done));
  if (!opening) add(progress_line(s));
  if (!opening) add(quality_line(s));
  for (const TrainingWarning& warning : s.warnings)
    if (warning.active) add("warning: " + to_string(warning));
  add(losses_line(s));
  if (s.push_age.count > 0) add(age_line(s.push_age));
  add(roles_line(s));
  for (const ServerStatus& v : s.servers)
    add(fmt::format(
        "{:<12} {} pid {} · {} · {} shards, {} as backup{} · {} keys/s{} · seen {:.1f} "
        "s ago",
        v.name, v.host, v.pid, v.address, v.shards, v.backups, v.draining ? ", drains" : "",
        with_commas(v.keys_per_s), above_mean(s, v), v.seen_s_ago));
  if (s.servers.size() > 1 && !s.hottest_shards.empty()) add(hottest_line(s));
  for (const WorkerStatus& w : s.workers)
    add(fmt::format(
        "{:<12} {} pid {} · {} threads · {} examples/s · {} blocks · sent {}, got {} · "
        "seen {:.1f} s ago",
        w.name, w.host, w.pid, w.threads, with_commas(whole(w.examples_per_s)), w.blocks,
        human_bytes(w.report.bytes_sent), human_bytes(w.report.bytes_received), w.seen_s_ago));
  bool waits = false;
  const auto add_wait = [&](const std::string& line) {
    if (!waits) add("waits:");
    waits = true;
    add(line);
  };
  for (const WaitStatus& wait : s.waits) add_wait(wait_line(wait));
  for (const WorkerStatus& w : s.workers)
    if (!w.report.waits.empty()) add_wait(fmt::format("  {}: {}", w.name, w.report.waits));
  if (!waits) add("nobody waits");
  return text;
}

}  // namespace flux
