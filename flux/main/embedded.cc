#include "flux/main/embedded.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "flux/base/executor.h"
#include "flux/base/text.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint32_t kDefaultShards = 256;

uint64_t random_incarnation() {
  std::random_device device;
  const uint64_t value = (static_cast<uint64_t>(device()) << 32) | device();
  return value == 0 ? 1 : value;
}

// What must agree before saved rows mean the same. Learning rates may change between runs.
std::map<std::string, std::string> describe_model(const Embedded& e) {
  std::map<std::string, std::string> model;
  const Job& job = e.job;
  model["shards"] = std::to_string(e.server->sparse_shards());
  model["seed"] = std::to_string(job.seed);
  model["data.format"] = job.data.format;
  model["data.dense_transform"] = job.data.dense_transform;
  model["data.key_per_example"] = job.data.key_per_example ? "true" : "false";
  model["dense_optimizer.rule"] = job.dense_optimizer.rule;
  for (const TableOptions& table : job.tables) {
    const std::string prefix = "tables." + table.name + ".";
    model[prefix + "dim"] = std::to_string(table.dim);
    model[prefix + "init"] = table.init;
    model[prefix + "init_scale"] = fmt::format("{}", table.init_scale);
    model[prefix + "optimizer.rule"] = table.optimizer.rule;
  }
  const std::vector<std::string> lines = split(e.graph->to_text(), '\n');
  for (size_t i = 0; i < lines.size(); ++i)
    if (!lines[i].empty()) model[fmt::format("model.{:03}", i)] = lines[i];
  return model;
}

Status check_same_job(const Embedded& e, const Manifest& found) {
  std::vector<std::string> differences = model_differences(found.model, e.model);
  for (size_t p = 0; p < found.closed.size(); ++p) {
    const std::string& then = found.closed[p].name;
    const std::string now = p < e.job.passes.size() ? e.job.passes[p].name : "nothing";
    if (then != now)
      differences.push_back(
          fmt::format("passes.{}: '{}' in the checkpoint, '{}' in the job", p, then, now));
  }
  const size_t open = found.closed.size();
  const std::string now = open < e.job.passes.size() ? e.job.passes[open].name : "nothing";
  if (found.geometry != 0 && found.open_pass != now)
    differences.push_back(fmt::format("passes.{}: '{}' is open in the checkpoint, '{}' in the job",
                                      open, found.open_pass, now));
  if (differences.empty()) return Status::ok();
  return invalid(
      "the checkpoint in {} was made by another model:\n  {}\n"
      "set them back, give another folder with --set output=DIR, or start over with --fresh",
      e.store().path_of(found.number), join(differences, "\n  "));
}

Status load_shards(Embedded* e, const Manifest& manifest) {
  if (manifest.shards.size() != e->server->shard_count())
    return error(Code::kCorrupt, "{}: {} shards, this job has {}",
                 e->store().path_of(manifest.number), manifest.shards.size(),
                 e->server->shard_count());
  std::atomic<size_t> next{0};
  std::vector<Status> results(e->threads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < e->threads; ++t)
    threads.emplace_back([&, t] {
      for (size_t s; results[t].is_ok() && (s = next.fetch_add(1)) < manifest.shards.size();) {
        auto image = e->store().read_shard(manifest, s);
        if (image.is_ok() && image.value().replica.shard() != s)
          image = error(Code::kCorrupt, "{}: shard {} where {} is expected",
                        manifest.shards[s].file.name, image.value().replica.shard(), s);
        results[t] = image.is_ok() ? e->server->load(image.value()) : image.status();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) FLUX_RETURN_IF_ERROR(result);
  // Files that only training needs are checked by everybody: a bad checkpoint is bad for all.
  for (const FileInfo& file : manifest.files) {
    const auto content = e->store().read(manifest, file);
    if (!content.is_ok()) return content.status();
  }
  e->server->close_below(static_cast<uint32_t>(manifest.closed.size()));
  return Status::ok();
}

// Tables in the order in which the graph, and so every request, names them.
Status order_tables(Embedded* e) {
  std::vector<TableOptions> ordered;
  for (const std::string& name : e->graph->tables())
    for (const TableOptions& table : e->job.tables)
      if (table.name == name) ordered.push_back(table);
  for (const TableOptions& table : e->job.tables)
    if (std::none_of(ordered.begin(), ordered.end(),
                     [&](const TableOptions& used) { return used.name == table.name; }))
      return invalid("{}: table '{}' is not used by any layer; remove it or use it", e->job.path,
                     table.name);
  e->job.tables = std::move(ordered);
  return Status::ok();
}

Status build(Embedded* e) {
  const FeatureCounts features = feature_counts(e->job.data);
  FLUX_ASSIGN_OR_RETURN(e->graph, build_graph(e->job, features.slots, features.dense));
  FLUX_RETURN_IF_ERROR(order_tables(e));
  FLUX_ASSIGN_OR_RETURN(e->precision, choose_precision(e->job.precision));
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  e->threads = e->job.deterministic ? 1 : e->job.threads == 0 ? cores : e->job.threads;
  e->incarnation = random_incarnation();
  ServerOptions options;
  options.shards = e->job.shards == 0 ? kDefaultShards : e->job.shards;
  options.tables = e->job.tables;
  options.dense_optimizer = e->job.dense_optimizer;
  options.parameters = e->graph->parameter_count();
  options.incarnation = e->incarnation;
  options.epoch = e->epoch;
  FLUX_ASSIGN_OR_RETURN(e->server, Server::create(options));
  e->server->init_dense(e->graph->initial_parameters(e->job.seed));
  e->coordinator = std::make_unique<Coordinator>(e->server->shard_count(), e->epoch);
  e->model = describe_model(*e);
  return Status::ok();
}

Result<std::unique_ptr<Embedded>> try_open(const Job& job, LoadMode mode) {
  const TimeNs start = steady_now_ns();
  auto e = std::make_unique<Embedded>();
  e->job = job;
  e->checkpoint_folder = join_path(job.output, "checkpoints");
  e->epoch = {1, 1};
  const std::vector<uint64_t> numbers =
      mode == LoadMode::kIgnore ? std::vector<uint64_t>() : e->store().committed();
  // A run in progress may replace a checkpoint while we read it: then its successor is there.
  const auto unless_replaced = [&](const Status& status) {
    return e->store().is_committed(numbers.back())
               ? status
               : error(Code::kUnavailable, "{} was replaced while it was read",
                       e->store().path_of(numbers.back()));
  };
  Result<Manifest> found = numbers.empty()
                               ? error(Code::kNotFound, "no checkpoint in {}", e->checkpoint_folder)
                               : e->store().load(numbers.back());
  if (!found.is_ok() && !numbers.empty()) return unless_replaced(found.status());
  if (!found.is_ok() && mode == LoadMode::kMustExist)
    return invalid("{}; train the job first: flux run {}", found.status().message(), job.path);
  if (found.is_ok()) e->epoch = {found.value().epoch.term + 1, 1};
  FLUX_RETURN_IF_ERROR(build(e.get()));
  if (found.is_ok()) {
    FLUX_RETURN_IF_ERROR(check_same_job(*e, found.value()));
    const Status loaded = load_shards(e.get(), found.value());
    if (!loaded.is_ok()) return unless_replaced(loaded);
    e->restored = std::move(found).value();
  }
  e->restore_s = static_cast<double>(steady_now_ns() - start) * 1e-9;
  return e;
}

}  // namespace

Result<std::unique_ptr<Embedded>> open_embedded(const Job& job, LoadMode mode) {
  constexpr int kTries = 20;
  for (int i = 1;; ++i) {
    auto opened = try_open(job, mode);
    if (opened.status().code() != Code::kUnavailable || i == kTries) return opened;
  }
}

}  // namespace flux
