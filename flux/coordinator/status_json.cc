#include "flux/coordinator/status_json.h"

#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flux/base/text.h"

namespace flux {
namespace {

using Json = nlohmann::ordered_json;

// One list of fields serves both directions: `Field` writes them or reads them.
struct Writer {
  Json* json;
  template <typename T>
  void operator()(const char* name, T& value) const {
    (*json)[name] = value;
  }
  void operator()(const char* name, std::optional<double>& value) const {
    (*json)[name] = value ? Json(*value) : Json(nullptr);
  }
  void id(const char* name, uint64_t& value) const {
    (*json)[name] = fmt::format("{:016x}", value);
  }
  template <typename T>
  void list(const char* name, std::vector<T>& values) const;
};

struct Reader {
  const Json* json;
  template <typename T>
  void operator()(const char* name, T& value) const {
    const auto found = json->find(name);
    if (found != json->end() && !found->is_null()) value = found->template get<T>();
  }
  void operator()(const char* name, std::optional<double>& value) const {
    const auto found = json->find(name);
    if (found != json->end() && !found->is_null()) value = found->get<double>();
  }
  void id(const char* name, uint64_t& value) const {
    const auto found = json->find(name);
    if (found != json->end()) value = std::stoull(found->get<std::string>(), nullptr, 16);
  }
  template <typename T>
  void list(const char* name, std::vector<T>& values) const;
};

template <typename Field>
void fields(const Field& field, WaitStatus& wait) {
  field("who", wait.who);
  field("what", wait.what);
  field("since_s", wait.since_s);
  field("until_s", wait.until_s);
}

template <typename Field>
void fields(const Field& field, WorkerReport& report) {
  field("examples", report.examples);
  field("batches", report.batches);
  field("loss_sum", report.loss_sum);
  field("train_auc", report.train_auc);
  field("duplicates", report.duplicates);
  field("resends", report.resends);
  field("bytes_sent", report.bytes_sent);
  field("bytes_received", report.bytes_received);
  field("cpu_s", report.cpu_s);
  field("rss_bytes", report.rss_bytes);
  field("stage_ns", report.stage_ns);
  field("waits", report.waits);
}

template <typename Field>
void fields(const Field& field, WorkerStatus& worker) {
  field("id", worker.id);
  field("name", worker.name);
  field("host", worker.host);
  field("pid", worker.pid);
  field("threads", worker.threads);
  field("seen_s_ago", worker.seen_s_ago);
  field("examples_per_s", worker.examples_per_s);
  field("blocks", worker.blocks);
  fields(field, worker.report);
}

template <typename Field>
void fields(const Field& field, ServerStatus& server) {
  field("id", server.id);
  field("name", server.name);
  field("host", server.host);
  field("address", server.address);
  field("pid", server.pid);
  field("seen_s_ago", server.seen_s_ago);
  field("shards", server.shards);
  field("backups", server.backups);
  field("draining", server.draining);
  field("rss_bytes", server.rss_bytes);
  field("keys_per_s", server.keys_per_s);
}

template <typename Field>
void fields(const Field& field, HotShard& shard) {
  field("shard", shard.shard);
  field("server", shard.server);
  field("keys_per_s", shard.keys_per_s);
}

template <typename Field>
void fields(const Field& field, FailoverStatus& failover) {
  field("what", failover.what);
  field("shards", failover.shards);
  field("seconds", failover.seconds);
}

template <typename Field>
void fields(const Field& field, TrainingWarning& warning) {
  field("id", warning.id);
  field("phase", warning.phase);
  field("part", warning.part);
  field("text", warning.text);
  field("examples", warning.examples);
  field("active", warning.active);
}

template <typename Field>
void fields(const Field& field, PushAgeStatus& age) {
  field("push_age_count", age.count);
  field("push_age_p50", age.p50);
  field("push_age_p99", age.p99);
  field("push_age_max", age.max);
}

template <typename Field>
void fields(const Field& field, JobStatus& status) {
  field("job", status.job);
  field("state", status.state);
  field("mode", status.mode);
  field("error", status.error);
  field("up_s", status.up_s);
  field.id("incarnation", status.incarnation);
  field("term", status.epoch.term);
  field("map_version", status.epoch.n);
  field("pass", status.pass);
  field("passes", status.passes);
  field("pass_name", status.pass_name);
  field("section", status.section);
  field("sections", status.sections);
  field("blocks_todo", status.todo);
  field("blocks_pending", status.pending);
  field("blocks_applied", status.applied);
  field("blocks_done", status.done);
  field("examples", status.examples);
  field("examples_total", status.examples_total);
  field("examples_run", status.examples_run);
  field("examples_applied", status.examples_applied);
  field("examples_per_s", status.examples_per_s);
  field("phase_name", status.phase_name);
  field("train_auc", status.train_auc);
  field("train_logloss", status.train_logloss);
  field("auc", status.auc);
  field("logloss", status.logloss);
  field("quality", status.quality);
  field.list("warnings", status.warnings);
  field("last_checkpoint", status.last_checkpoint);
  field("checkpoint_s_ago", status.checkpoint_s_ago);
  field("workers_lost", status.workers_lost);
  field("blocks_reissued", status.blocks_reissued);
  field("batches_skipped", status.batches_skipped);
  field("duplicates", status.duplicates);
  fields(field, status.push_age);
  field("shards", status.shards);
  field("replicas", status.replicas);
  field("shards_without_backup", status.shards_without_backup);
  field("shards_unserved", status.shards_unserved);
  field("moves", status.moves);
  field("epoch_changes", status.epoch_changes);
  field("servers_lost", status.servers_lost);
  field("replicas_differed", status.replicas_differed);
  field("failovers", status.failovers);
  field("failover_max_s", status.failover_max_s);
  field.list("latest_failovers", status.latest_failovers);
  field.list("hottest_shards", status.hottest_shards);
  field("rebalanced", status.rebalanced);
  field("taken_over", status.taken_over);
  field("wanted_workers", status.wanted_workers);
  field("wanted_servers", status.wanted_servers);
  field.list("workers", status.workers);
  field.list("servers", status.servers);
  field.list("waits", status.waits);
}

template <typename T>
void Writer::list(const char* name, std::vector<T>& values) const {
  Json items = Json::array();
  for (T& value : values) {
    Json item;
    fields(Writer{&item}, value);
    items.push_back(std::move(item));
  }
  (*json)[name] = std::move(items);
}

template <typename T>
void Reader::list(const char* name, std::vector<T>& values) const {
  const auto found = json->find(name);
  if (found == json->end()) return;
  for (const Json& item : found->template get_ref<const Json::array_t&>()) {
    (void)item.template get_ref<const Json::object_t&>();  // throws unless it is an object
    fields(Reader{&item}, values.emplace_back());
  }
}

}  // namespace

std::string status_json(const JobStatus& status) {
  JobStatus copy = status;
  Json json;
  fields(Writer{&json}, copy);
  // Names come from other machines: bytes that are no UTF-8 must not end the coordinator.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<JobStatus> parse_status_json(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return error(Code::kCorrupt, "the answer is no status: no JSON object");
  JobStatus status;
  try {
    fields(Reader{&json}, status);
  } catch (const std::exception& failure) {  // of the JSON library: a value of another type
    return error(Code::kCorrupt, "the answer is no status: {}", failure.what());
  }
  return status;
}

}  // namespace flux
