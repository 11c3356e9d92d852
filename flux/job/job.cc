#include "flux/job/job.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flux/base/text.h"
#include "flux/job/dense_memory.h"
#include "flux/job/overrides.h"
#include "flux/job/validate.h"
#include "flux/nn/graph_checks.h"

namespace flux {
namespace {

struct FileCloser {
  int fd;
  ~FileCloser() { ::close(fd); }
};

Status directory_error(const std::string& path) {
  const std::string inside = path + (path.ends_with('/') ? "job.yaml" : "/job.yaml");
  const bool exists = ::access(inside.c_str(), R_OK) == 0;
  return invalid("{}: is a folder, not a job file{}", path,
                 exists ? fmt::format(", did you mean '{}'?", inside) : "");
}

}  // namespace

// At most one byte more than a job may have: a device that never ends is not read for ever.
Result<std::string> read_job_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_status(path, errno);
  const FileCloser closer{fd};
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return errno_status(path, errno);
  if (S_ISDIR(info.st_mode)) return directory_error(path);
  std::string text(kJobBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd, text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(path, errno);
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > kJobBytesMax)
    return invalid(
        "{}: is {}too large for a job file, which has at most {}; is it data? flux data head "
        "shows that",
        path, S_ISREG(info.st_mode) ? human_bytes(static_cast<uint64_t>(info.st_size)) + ", " : "",
        human_bytes(kJobBytesMax));
  text.resize(size);
  return text;
}

Result<Job> load_job(const std::string& path, std::span<const Override> overrides) {
  FLUX_ASSIGN_OR_RETURN(const std::string text, read_job_file(path));
  return parse_job(path, text, overrides);
}

Result<Job> parse_job(const std::string& path, const std::string& text,
                      std::span<const Override> overrides) {
  Problems problems(path, text);
  YamlNode root;
  if (!parse_yaml(text, &problems, &root)) return problems.to_status();
  if (root.is_null()) {
    return invalid("{}:1:1: the file is empty; see examples/ctr_dnn/job.yaml for a whole job",
                   path);
  }
  if (!root.is_map()) {
    problems.add(root.origin, fmt::format("a job is a map of fields, not {}", describe_node(root)),
                 "begin with 'name: my_job'");
    return problems.to_status();
  }
  apply_overrides(overrides, &root, &problems);
  JobDraft draft;
  draft.job.path = path;
  read_section(root, job_section(), {&draft, &draft}, &problems);
  check_job(root, &draft, &problems);
  if (!problems.empty()) return problems.to_status();
  find_label_rules(&draft.job);
  return std::move(draft.job);
}

namespace {

ModelInputs model_inputs(const Job& job, const Features& features) {
  ModelInputs inputs;
  inputs.slots = features.slots;
  inputs.dense = features.dense;
  inputs.slot_names = features.slot_names;
  inputs.many_keys = features.many_keys;
  inputs.labels = features.labels;
  inputs.weights = features.weights;
  inputs.values = features.values;
  for (const TableOptions& table : job.tables) {
    inputs.tables[table.name] = table.dim;
    if (!table.slots.empty()) inputs.table_slots[table.name] = table.slots;
  }
  return inputs;
}

Result<std::shared_ptr<const Graph>> build_network(const Job& job,
                                                   const std::vector<NodeSpec>& layers,
                                                   const Features& features,
                                                   const std::string& where) {
  GraphBuilder builder(model_inputs(job, features));
  for (const NodeSpec& layer : layers) {
    const Status added = builder.add(layer);
    if (added.is_ok()) continue;
    const bool placed = added.message().find(layer.origin) != std::string::npos;
    return placed ? added : added.with_context(layer.origin);
  }
  Result<std::shared_ptr<const Graph>> graph = builder.finish();
  if (graph.is_ok()) {
    FLUX_RETURN_IF_ERROR(check_graph(*graph.value()));
    FLUX_RETURN_IF_ERROR(check_dense_count(*graph.value()));
  }
  if (graph.is_ok() && job.wire == "fp16" && !graph.value()->summaries().empty())
    return invalid(
        "{}: wire: fp16 cannot carry the model's summaries (sums over a batch may exceed 65504); "
        "choose bf16 or fp32",
        where);
  if (graph.is_ok() || graph.status().message().find(job.path) != std::string::npos) return graph;
  return graph.status().with_context(where);
}

}  // namespace

Result<Graphs> build_graphs(const Job& job, const Features& features) {
  Graphs graphs;
  if (job.phases.empty()) {
    FLUX_ASSIGN_OR_RETURN(auto graph, build_network(job, job.layers, features, job.path));
    graphs.push_back(std::move(graph));
  }
  for (const PhaseSpec& phase : job.phases) {
    const std::string where = fmt::format("{}: phase {}", job.path, phase.name);
    FLUX_ASSIGN_OR_RETURN(auto graph, build_network(job, phase.layers, features, where));
    if (job.phases.size() > 1 && graph->parameter_count() == 0)
      return invalid(
          "{}: it has no dense parameters, whose shard counts its examples; add a layer "
          "that has some, such as fc",
          where);
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

Result<std::shared_ptr<const Graph>> build_graph(const Job& job, const Features& features) {
  return build_network(job, job.layers, features, job.path);
}

std::vector<std::string> phase_names(const Job& job) {
  if (job.phases.empty()) return {"train"};
  std::vector<std::string> names;
  for (const PhaseSpec& phase : job.phases) names.push_back(phase.name);
  return names;
}

std::vector<DenseRange> dense_ranges(const Job& job, const Graphs& graphs) {
  std::vector<DenseRange> ranges;
  for (size_t g = 0; g < graphs.size(); ++g) {
    const OptimizerOptions& rule =
        job.phases.empty() ? job.dense_optimizer : job.phases[g].dense_optimizer;
    for (const Parameter& p : graphs[g]->parameters()) {
      if (p.update == UpdateKind::kSummary) {
        ranges.push_back({p.size, {.rule = "summary", .decay = p.decay}, 1});
      } else {
        ranges.push_back({p.size, rule, p.lr_scale});
      }
    }
  }
  return ranges;
}

}  // namespace flux
