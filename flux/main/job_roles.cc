#include "flux/main/job_roles.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <thread>
#include <utility>

#include "flux/base/text.h"
#include "flux/data/feature_check.h"
#include "flux/main/found_format.h"
#include "flux/main/pass_data.h"
#include "flux/main/pass_files.h"
#include "flux/main/test_look.h"
#include "flux/worker/scored.h"

namespace flux {
namespace {

constexpr uint32_t kDefaultShards = 256;

Status order_tables(RoleJob* role) {
  std::vector<TableOptions> ordered;
  for (const std::string& name : role->layout.tables)
    for (const TableOptions& table : role->job.tables)
      if (table.name == name) ordered.push_back(table);
  for (const TableOptions& table : role->job.tables)
    if (std::none_of(ordered.begin(), ordered.end(),
                     [&](const TableOptions& used) { return used.name == table.name; }))
      return invalid("{}: table '{}' is not used by any layer; remove it or use it", role->job.path,
                     table.name);
  role->job.tables = std::move(ordered);
  role->layout.shape.groups = role->job.key_groups;
  for (const TableOptions& table : role->job.tables)
    if (role->job.key_groups > 1) role->layout.shape.table_groups.push_back(table.group);
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

}  // namespace

Result<JobSpec> read_spec(const std::string& path, std::span<const std::string> sets) {
  JobSpec spec;
  spec.path = path;
  FLUX_ASSIGN_OR_RETURN(spec.text, read_job_file(path));
  for (const std::string& text : sets) {
    FLUX_ASSIGN_OR_RETURN(Override one, parse_override(text));
    spec.sets.emplace_back(std::move(one.path), std::move(one.value));
  }
  const auto job = parse_spec(spec);
  if (!job.is_ok()) return spec;  // whoever opens it says why
  FLUX_ASSIGN_OR_RETURN(auto found, found_format(job.value()));
  if (found) spec.sets.emplace_back(std::move(found->path), std::move(found->value));
  return spec;
}

Result<Job> parse_spec(const JobSpec& spec) {
  std::vector<Override> overrides;
  for (const auto& [path, value] : spec.sets) overrides.push_back({path, value});
  return parse_job(spec.path, spec.text, overrides);
}

std::vector<float> RoleJob::initial_parameters() const {
  std::vector<float> all;
  for (const auto& graph : graphs) {
    const std::vector<float> own = graph->initial_parameters(job.seed);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

bool RoleJob::minimises_log_loss() const {
  return std::all_of(graphs.begin(), graphs.end(),
                     [](const auto& graph) { return flux::minimises_log_loss(*graph); });
}

Result<RoleJob> open_role_job(Job job) {
  RoleJob role;
  role.job = std::move(job);
  FLUX_ASSIGN_OR_RETURN(role.graphs, build_graphs(role.job, features_of(role.job.data)));
  role.sparse_shards = role.job.shards == 0 ? kDefaultShards : role.job.shards;
  role.layout = model_layout(graphs_of(role.graphs), role.sparse_shards);
  FLUX_RETURN_IF_ERROR(order_tables(&role));
  role.all_shards = role.layout.shape.all_shards();
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
  for (const auto& [name, text] : describe_features(job.data)) model["data." + name] = text;
  model["dense_optimizer.rule"] = job.dense_optimizer.rule;
  const std::vector<DenseRange> ranges = dense_ranges(job, role.graphs);
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
    if (!table.slots.empty()) model[prefix + "slots"] = join(table.slots, ",");
  }
  for (size_t g = 0; g < role.graphs.size(); ++g) {
    const std::string prefix =
        job.phases.size() < 2 ? "model" : fmt::format("phases.{}.{}", g, job.phases[g].name);
    const std::vector<std::string> lines = split(role.graphs[g]->to_text(), '\n');
    for (size_t i = 0; i < lines.size(); ++i)
      if (!lines[i].empty()) model[fmt::format("{}.{:03}", prefix, i)] = lines[i];
  }
  return model;
}

std::vector<SliceSlot> slice_slots(const Job& job) {
  std::vector<SliceSlot> slots;
  for (const std::string& name : job.data.slices) slots.push_back({name, job.slice_values});
  return slots;
}

uint32_t worker_threads(const Job& job, int wish) {
  const uint32_t asked = wish >= 0 ? static_cast<uint32_t>(wish) : job.threads;
  return asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

double checkpoint_every_s(const Job& job, bool cluster) {
  constexpr double kAlone = 60, kCluster = 8;
  return job.checkpoint_every_s ? *job.checkpoint_every_s : cluster ? kCluster : kAlone;
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
                   static_cast<uint16_t>(role.graphs.size()), static_cast<uint16_t>(job.epochs)};
  plan.phases = phase_names(job);
  plan.mode = job.mode;
  plan.deterministic = job.deterministic;
  plan.checkpoint_every_s = checkpoint_every_s(job, false);
  plan.checkpoint_keep = job.checkpoint_keep;
  plan.key_per_example = job.data.key_per_example;
  plan.skip_limit = job.skip_limit;
  plan.lr = job.on_workers_change;
  plan.stop = job.stop;
  plan.slice_values = job.slice_values;
  const Features features = features_of(job.data);
  // Where rows cannot tell how many examples they saw, dense shards do.
  plan.slots = features.many_keys || job.key_groups > 1 ? 0 : features.slots;
  const std::vector<PhaseShape>& phases = role.layout.shape.phases;
  if (!phases.empty())
    plan.counted_phases = static_cast<uint32_t>(std::count_if(
        phases.begin(), phases.end(),
        [](const PhaseShape& phase) { return !phase.dims.empty() && phase.dims[0] > 0; }));
  plan.has_test = !job.test.empty();
  const auto shared = std::make_shared<const Job>(job);
  // Before anything is removed or trained for hours: a mistyped name, a test of another format.
  plan.check_inputs = [shared](const std::vector<ClosedPass>& closed) -> Status {
    FLUX_RETURN_IF_ERROR(check_closed_passes(*shared, closed));
    FLUX_RETURN_IF_ERROR(expand_globs(shared->test).status());
    for (size_t p = closed.size(); p < shared->passes.size(); ++p)
      FLUX_RETURN_IF_ERROR(expand_globs(shared->passes[p].train).status());
    return look_at_test(*shared);
  };
  plan.reading = [shared](uint32_t pass) {
    const auto files = expand_globs(shared->passes[pass].train);
    const size_t n = files.is_ok() ? files.value().size() : 0;
    return fmt::format("pass {}: reading {} file{}", shared->passes[pass].name, n,
                       n == 1 ? "" : "s");
  };
  plan.scan = [shared, threads](uint32_t pass, const std::atomic<bool>* stop) -> Result<Geometry> {
    FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(shared->passes[pass].train));
    return cut_pass(*shared, pass, files, threads, stop);
  };
  plan.check_frozen = [shared, threads](uint32_t pass, const Geometry& frozen) {
    return check_frozen(*shared, pass, frozen, threads);
  };
  plan.scan_test = [shared, threads](const std::atomic<bool>* stop) -> Result<Geometry> {
    return cut_test(*shared, threads, stop);
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
  options.groups = role.job.key_groups;
  options.dense_optimizer = role.job.dense_optimizer;
  options.dense_ranges = dense_ranges(role.job, role.graphs);
  options.parameters = role.layout.shape.parameters;
  options.phases = role.layout.shape.phases;
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
  server->init_dense(role.initial_parameters());
  return server;
}

}  // namespace flux
