#include "flux/coordinator/prometheus_text.h"

#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace flux {
namespace {

// A label's value: backslash, quote and end of line are escaped.
std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

class Text {
 public:
  explicit Text(const std::string& job) : labels_(fmt::format("job=\"{}\"", escaped(job))) {}

  void metric(const char* name, const char* type, const char* help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                   type);
  }
  void value(double number) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name_, labels_, number);
  }
  void value(const char* label, std::string_view of, double number) {
    fmt::format_to(std::back_inserter(text_), "{}{{{},{}=\"{}\"}} {}\n", name_, labels_, label,
                   escaped(of), number);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string labels_;
  const char* name_ = "";
  std::string text_;
};

double number(uint64_t n) {
  return static_cast<double>(n);
}

void add_job(const JobStatus& status, Text* text) {
  text->metric("flux_job_state", "gauge", "1 for the state that the job is in.");
  text->value("state", status.state, 1);
  text->metric("flux_up_seconds", "gauge", "Seconds since the coordinator started.");
  text->value(status.up_s);
  text->metric("flux_pass", "gauge", "Number of the pass that is trained, from 0.");
  text->value(status.pass);
  text->metric("flux_passes", "gauge", "Passes of the job.");
  text->value(status.passes);
  text->metric("flux_blocks", "gauge", "Blocks of the current section by state.");
  text->value("state", "todo", static_cast<double>(status.todo));
  text->value("state", "pending", static_cast<double>(status.pending));
  text->value("state", "applied", static_cast<double>(status.applied));
  text->value("state", "done", static_cast<double>(status.done));
  text->metric("flux_examples_applied", "gauge",
               "Examples applied over the life of the model, as far as known.");
  text->value(number(status.examples));
  text->metric("flux_examples_planned", "gauge",
               "Examples applied when the passes known so far are closed.");
  text->value(number(status.examples_total));
  text->metric("flux_examples_per_second", "gauge", "Examples trained per second, lately.");
  text->value(status.examples_per_s);
  if (status.train_auc) {
    text->metric("flux_train_auc", "gauge", "Progressive AUC while training.");
    text->value(*status.train_auc);
  }
  text->metric("flux_train_logloss", "gauge", "Mean loss while training.");
  text->value(status.train_logloss);
  if (status.auc) {
    text->metric("flux_test_auc", "gauge", "AUC of the last test.");
    text->value(*status.auc);
  }
  if (status.logloss) {
    text->metric("flux_test_logloss", "gauge", "Log loss of the last test.");
    text->value(*status.logloss);
  }
  if (status.checkpoint_s_ago >= 0) {
    text->metric("flux_checkpoint_age_seconds", "gauge", "Age of the newest checkpoint.");
    text->value(status.checkpoint_s_ago);
  }
}

void add_counters(const JobStatus& status, Text* text) {
  text->metric("flux_workers_lost_total", "counter", "Workers that were taken for dead.");
  text->value(number(status.workers_lost));
  text->metric("flux_blocks_reissued_total", "counter", "Blocks leased again after a loss.");
  text->value(number(status.blocks_reissued));
  text->metric("flux_batches_skipped_total", "counter", "Batches set aside by a verdict.");
  text->value(number(status.batches_skipped));
  text->metric("flux_duplicates_total", "counter",
               "Pushes that a shard had before and did not apply again.");
  text->value(number(status.duplicates));
  const PushAgeStatus& age = status.push_age;
  text->metric(
      "flux_push_age_examples", "gauge",
      "Examples applied between the pull of a gradient's values and its push, in this run.");
  text->value("quantile", "0.5", number(age.p50));
  text->value("quantile", "0.99", number(age.p99));
  text->value("quantile", "1", number(age.max));
  text->metric("flux_push_ages_total", "counter", "Pushes whose age is known, at each server.");
  text->value(number(age.count));
  text->metric("flux_workers", "gauge", "Workers that take part now.");
  text->value(static_cast<double>(status.workers.size()));
  text->metric("flux_servers", "gauge", "Servers that take part now.");
  text->value(static_cast<double>(status.servers.size()));
  text->metric("flux_waits", "gauge", "Named waits that last now; /status tells them.");
  text->value(static_cast<double>(status.waits.size()));
}

void add_warnings(const JobStatus& status, Text* text) {
  text->metric("flux_quality_suspect", "gauge",
               "1 while a warning about the training is not over.");
  text->value(status.quality == "suspect" ? 1 : 0);
  std::map<std::string, double> by_id;  // that are not over
  for (const TrainingWarning& warning : status.warnings)
    by_id[warning.id] += warning.active ? 1 : 0;
  if (by_id.empty()) return;
  text->metric("flux_warnings", "gauge",
               "Warnings about the training that are not over; /status tells them.");
  for (const auto& [id, count] : by_id) text->value("warning", id, count);
}

void add_workers(const JobStatus& status, Text* text) {
  const auto each = [&](const char* name, const char* type, const char* help,
                        const std::function<double(const WorkerStatus&)>& value) {
    text->metric(name, type, help);
    for (const WorkerStatus& worker : status.workers)
      text->value("worker", worker.name, value(worker));
  };
  using W = const WorkerStatus&;
  each("flux_worker_examples_total", "counter", "Examples trained by a worker since it joined.",
       [](W w) { return number(w.report.examples); });
  each("flux_worker_examples_per_second", "gauge", "Examples trained per second, lately.",
       [](W w) { return w.examples_per_s; });
  each("flux_worker_resends_total", "counter", "Pushes that a worker sent more than once.",
       [](W w) { return number(w.report.resends); });
  each("flux_worker_bytes_sent_total", "counter", "Bytes a worker sent to servers.",
       [](W w) { return number(w.report.bytes_sent); });
  each("flux_worker_bytes_received_total", "counter", "Bytes a worker received from servers.",
       [](W w) { return number(w.report.bytes_received); });
  each("flux_worker_cpu_seconds_total", "counter", "CPU time of a worker's process.",
       [](W w) { return w.report.cpu_s; });
  each("flux_worker_memory_bytes", "gauge", "Resident memory of a worker's process.",
       [](W w) { return number(w.report.rss_bytes); });
  each("flux_worker_seen_seconds_ago", "gauge", "Seconds since a worker last reported.",
       [](W w) { return w.seen_s_ago; });
  each("flux_worker_blocks", "gauge", "Blocks leased to a worker now.",
       [](W w) { return w.blocks; });
}

void add_places(const JobStatus& status, Text* text) {
  text->metric("flux_shards", "gauge", "Shards of the job.");
  text->value(status.shards);
  text->metric("flux_shards_without_backup", "gauge",
               "Shards that should have a backup and lack it.");
  text->value(status.shards_without_backup);
  text->metric("flux_shards_unserved", "gauge", "Shards that nobody serves now.");
  text->value(status.shards_unserved);
  text->metric("flux_moves", "gauge", "Shards that are being copied or moved.");
  text->value(status.moves);
  text->metric("flux_shards_rebalanced_total", "counter", "Shards that were moved for their load.");
  text->value(number(status.rebalanced));
  text->metric("flux_hottest_shard_keys_per_second", "gauge",
               "Keys that workers pull and push of the hottest shard, lately.");
  text->value(status.hottest_shards.empty() ? 0 : number(status.hottest_shards[0].keys_per_s));
  text->metric("flux_epoch_changes_total", "counter",
               "Changes of who serves a shard or follows it.");
  text->value(number(status.epoch_changes));
  text->metric("flux_servers_lost_total", "counter", "Servers that were taken for dead.");
  text->value(number(status.servers_lost));
  text->metric("flux_replicas_differed_total", "counter",
               "Replicas that differed from their primary and were dropped; it should stay 0.");
  text->value(number(status.replicas_differed));
  text->metric("flux_failovers_total", "counter", "Losses that left shards unserved for a while.");
  text->value(number(status.failovers));
  text->metric("flux_failover_max_seconds", "gauge", "The longest that shards were unserved.");
  text->value(status.failover_max_s);
}

void add_servers(const JobStatus& status, Text* text) {
  text->metric("flux_server_shards", "gauge", "Shards that a server is the primary of.");
  for (const ServerStatus& server : status.servers)
    text->value("server", server.name, server.shards);
  text->metric("flux_server_backups", "gauge", "Shards that a server is the backup of.");
  for (const ServerStatus& server : status.servers)
    text->value("server", server.name, server.backups);
  text->metric("flux_server_keys_per_second", "gauge",
               "Keys that workers pull and push at a server, lately.");
  for (const ServerStatus& server : status.servers)
    text->value("server", server.name, number(server.keys_per_s));
  text->metric("flux_server_draining", "gauge", "1 while a server is drained.");
  for (const ServerStatus& server : status.servers)
    text->value("server", server.name, server.draining ? 1 : 0);
  text->metric("flux_server_seen_seconds_ago", "gauge", "Seconds since a server last reported.");
  for (const ServerStatus& server : status.servers)
    text->value("server", server.name, server.seen_s_ago);
}

}  // namespace

std::string prometheus_text(const JobStatus& status) {
  Text text(status.job);
  add_job(status, &text);
  add_counters(status, &text);
  add_warnings(status, &text);
  add_workers(status, &text);
  add_places(status, &text);
  add_servers(status, &text);
  return text.take();
}

}  // namespace flux
