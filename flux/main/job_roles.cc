#include "flux/main/job_roles.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "flux/base/text.h"

namespace flux {
namespace {

constexpr uint32_t kDefaultShards = 256;

Status order_tables(RoleJob* role) {
  std::vector<TableOptions> ordered;
  for (const std::string& name : role->graph->tables())
    for (const TableOptions& table : role->job.tables)
      if (table.name == name) ordered.push_back(table);
  for (const TableOptions& table : role->job.tables)
    if (std::none_of(ordered.begin(), ordered.end(),
                     [&](const TableOptions& used) { return used.name == table.name; }))
      return invalid("{}: table '{}' is not used by any layer; remove it or use it", role->job.path,
                     table.name);
  role->job.tables = std::move(ordered);
  return Status::ok();
}

Result<std::string> absolute(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path result = std::filesystem::absolute(path, failed);
  if (failed) return errno_status("cannot make " + path + " absolute", failed.value());
  return result.lexically_normal().string();
}

Status absolute_all(std::vector<std::string>* paths) {
  for (std::string& path : *paths) {
    FLUX_ASSIGN_OR_RETURN(path, absolute(path));
  }
  return Status::ok();
}

// The same place, whichever way it is written; what cannot be made absolute stays as it is.
std::string canonical(const std::string& path) {
  const auto result = absolute(path);
  return result.is_ok() ? result.value() : path;
}

Result<std::string> check_frozen(const Job& job, uint32_t pass, const Geometry& frozen) {
  Geometry wanted = frozen;  // the parts of a cut that the job file decides
  wanted.format = job.data.format;
  wanted.batch_size = job.data.batch_size;
  wanted.shuffle_seed = shuffle_seed_of(job.data);
  const auto differences = geometry_differences(frozen, wanted);
  const std::string& name = job.passes[pass].name;
  if (!differences.empty())
    return invalid(
        "pass {} was begun with another cut of the data:\n  {}\n"
        "set it back until the pass is closed, or start over with --fresh",
        name, join(differences, "\n  "));
  FLUX_ASSIGN_OR_RETURN(const auto dataset, Dataset::open(frozen, job.data));
  FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(job.passes[pass].train));
  size_t added = 0;
  for (const std::string& path : files)
    added += std::none_of(frozen.files.begin(), frozen.files.end(), [&](const DataFile& file) {
      return canonical(file.path) == canonical(path);
    });
  if (added == 0) return std::string();
  return fmt::format("note: {} new file(s) match, but pass {} was cut without them", added, name);
}

}  // namespace

Result<JobSpec> read_spec(const std::string& path, std::span<const std::string> sets) {
  JobSpec spec;
  spec.path = path;
  FLUX_ASSIGN_OR_RETURN(spec.text, read_job_file(path));
  for (const std::string& text : sets) {
    FLUX_ASSIGN_OR_RETURN(Override one, parse_override(text));
    spec.sets.emplace_back(std::move(one.path), std::move(one.value));
  }
  return spec;
}

Result<Job> parse_spec(const JobSpec& spec) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : spec.sets) overrides.push_back({path, value});
  return parse_job(spec.path, spec.text, overrides);
}

Result<RoleJob> open_role_job(Job job) {
  RoleJob role;
  role.job = std::move(job);
  FLUX_ASSIGN_OR_RETURN(role.graph, build_graph(role.job, features_of(role.job.data)));
  FLUX_RETURN_IF_ERROR(order_tables(&role));
  role.sparse_shards = role.job.shards == 0 ? kDefaultShards : role.job.shards;
  role.all_shards = role.sparse_shards + dense_shard_count(role.graph->parameter_count());
  return role;
}

Result<RoleJob> open_role_job(const JobSpec& spec) {
  FLUX_ASSIGN_OR_RETURN(Job job, parse_spec(spec));
  return open_role_job(std::move(job));
}

Status absolute_paths(Job* job) {
  if (!job->output.empty()) {
    FLUX_ASSIGN_OR_RETURN(job->output, absolute(job->output));
  }
  if (!job->data.vocabulary.empty()) {
    FLUX_ASSIGN_OR_RETURN(job->data.vocabulary, absolute(job->data.vocabulary));
  }
  FLUX_RETURN_IF_ERROR(absolute_all(&job->test));
  for (PassSpec& pass : job->passes) FLUX_RETURN_IF_ERROR(absolute_all(&pass.train));
  return Status::ok();
}

std::map<std::string, std::string> describe_model(const RoleJob& role) {
  const Job& job = role.job;
  std::map<std::string, std::string> model;
  model["shards"] = std::to_string(role.sparse_shards);
  model["seed"] = std::to_string(job.seed);
  model["data.format"] = job.data.format;
  model["data.dense_transform"] = job.data.dense_transform;
  model["data.key_per_example"] = job.data.key_per_example ? "true" : "false";
  model["dense_optimizer.rule"] = job.dense_optimizer.rule;
  const std::vector<DenseRange> ranges = dense_ranges(job, *role.graph);
  const bool one_rule = std::all_of(ranges.begin(), ranges.end(), [&](const DenseRange& range) {
    return range.optimizer.rule == ranges[0].optimizer.rule && range.lr_scale == ranges[0].lr_scale;
  });
  if (!one_rule) model["dense_optimizer.ranges"] = to_string(ranges);
  for (const TableOptions& table : job.tables) {
    const std::string prefix = "tables." + table.name + ".";
    model[prefix + "dim"] = std::to_string(table.dim);
    model[prefix + "init"] = table.init;
    model[prefix + "init_scale"] = fmt::format("{}", table.init_scale);
    model[prefix + "optimizer.rule"] = table.optimizer.rule;
  }
  const std::vector<std::string> lines = split(role.graph->to_text(), '\n');
  for (size_t i = 0; i < lines.size(); ++i)
    if (!lines[i].empty()) model[fmt::format("model.{:03}", i)] = lines[i];
  return model;
}

uint32_t worker_threads(const Job& job, int wish) {
  if (job.deterministic) return 1;
  const uint32_t asked = wish >= 0 ? static_cast<uint32_t>(wish) : job.threads;
  return asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

uint64_t random_id() {
  std::random_device device;
  const uint64_t value = (static_cast<uint64_t>(device()) << 32) | device();
  return value == 0 ? 1 : value;
}

Result<JobPlan> make_plan(const RoleJob& role, JobSpec spec, uint32_t threads) {
  const Job& job = role.job;
  JobPlan plan;
  plan.spec = std::move(spec);
  plan.name = job.name;
  plan.output = job.output;
  plan.model = describe_model(role);
  plan.sparse_shards = role.sparse_shards;
  plan.all_shards = role.all_shards;
  for (const PassSpec& pass : job.passes) plan.passes.push_back(pass.name);
  plan.schedule = {static_cast<uint32_t>(job.passes.size()),
                   static_cast<uint16_t>(job.phases.size()), static_cast<uint16_t>(job.epochs)};
  plan.mode = job.mode;
  plan.deterministic = job.deterministic;
  plan.checkpoint_every_s = job.checkpoint_every_s;
  plan.checkpoint_keep = job.checkpoint_keep;
  plan.key_per_example = job.data.key_per_example;
  plan.skip_limit = job.skip_limit;
  plan.lr = job.on_workers_change;
  const Features features = features_of(job.data);
  plan.slots = features.many_keys ? 0 : features.slots;
  plan.has_test = !job.test.empty();
  const auto shared = std::make_shared<const Job>(job);
  // Before anything is removed or trained for hours: a mistyped file name.
  plan.check_inputs = [shared](uint32_t first) -> Status {
    FLUX_RETURN_IF_ERROR(expand_globs(shared->test).status());
    for (size_t p = first; p < shared->passes.size(); ++p)
      FLUX_RETURN_IF_ERROR(expand_globs(shared->passes[p].train).status());
    return Status::ok();
  };
  plan.reading = [shared](uint32_t pass) {
    const auto files = expand_globs(shared->passes[pass].train);
    const size_t n = files.is_ok() ? files.value().size() : 0;
    return fmt::format("pass {}: reading {} file{}", shared->passes[pass].name, n,
                       n == 1 ? "" : "s");
  };
  plan.scan = [shared, threads](uint32_t pass, const std::atomic<bool>* stop) -> Result<Geometry> {
    FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(shared->passes[pass].train));
    return Dataset::scan(files, shared->data, threads, stop);
  };
  plan.check_frozen = [shared](uint32_t pass, const Geometry& frozen) {
    return check_frozen(*shared, pass, frozen);
  };
  plan.scan_test = [shared, threads](const std::atomic<bool>* stop) -> Result<Geometry> {
    DataOptions data = shared->data;
    data.shuffle = false;
    FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(shared->test));
    return Dataset::scan(files, data, threads, stop);
  };
  return plan;
}

namespace {
// Copying and checksums of one shard beside the disk's work for another.
constexpr uint32_t kFileThreads = 2;
}  // namespace

Result<ServerOptions> server_options(const RoleJob& role, uint64_t incarnation, ShardEpoch epoch) {
  ServerOptions options;
  options.shards = role.sparse_shards;
  options.tables = role.job.tables;
  options.dense_optimizer = role.job.dense_optimizer;
  options.dense_ranges = dense_ranges(role.job, *role.graph);
  options.parameters = role.graph->parameter_count();
  options.incarnation = incarnation;
  options.epoch = epoch;
  options.file_threads = kFileThreads;
  options.chain.increments_max = role.job.checkpoint_full_every - 1;
  return options;
}

Result<std::shared_ptr<Server>> make_server(const OpenJob& open, const ServerLinks& links) {
  FLUX_ASSIGN_OR_RETURN(const RoleJob role, open_role_job(open.job));
  FLUX_ASSIGN_OR_RETURN(ServerOptions options, server_options(role, open.incarnation, {}));
  options.places = open.places;
  options.self = open.self;
  options.executor = links.executor;
  options.reach = links.reach;
  options.log = links.log;
  FLUX_ASSIGN_OR_RETURN(auto server, Server::create(options));
  server->init_dense(role.graph->initial_parameters(role.job.seed));
  return server;
}

}  // namespace flux
