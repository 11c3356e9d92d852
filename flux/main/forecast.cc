#include "flux/main/forecast.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "flux/base/text.h"
#include "flux/main/pass_data.h"
#include "flux/table/sparse_shard.h"
#include "flux/worker/key_groups.h"

namespace flux {
namespace {

constexpr double kIndexBytes = 6.5;  // per row; key_index.h: 5 to 8

// Bytes that a row of a table takes on a server.
double bytes_per_row(const TableOptions& table) {
  const auto optimizer = make_optimizer(table.optimizer);
  if (!optimizer.is_ok()) return 0;  // refused long before
  const SparseShard shard(table, optimizer.value().get(), make_row_arena(table));
  return shard.figures().row_stride + kIndexBytes;
}

std::string about(uint64_t n, bool exact) {
  return (exact ? "" : "about ") + with_commas(n);
}

}  // namespace

double IdGrowth::power() const {
  if (ids == 0 || half_ids == 0) return 0;
  const double growth = std::log2(static_cast<double>(ids) / static_cast<double>(half_ids));
  return std::clamp(growth, 0.0, 1.0);
}

uint64_t IdGrowth::at(uint64_t examples_in_all) const {
  if (examples == 0 || examples_in_all <= examples) return ids;
  const double more = static_cast<double>(examples_in_all) / static_cast<double>(examples);
  return static_cast<uint64_t>(static_cast<double>(ids) * std::pow(more, power()));
}

namespace {

// Counts distinct ids as batches go by.
class IdCounter {
 public:
  explicit IdCounter(uint64_t records) : half_((records + 1) / 2) {}
  void add(const std::vector<uint64_t>& keys, uint32_t examples) {
    ids_.insert(keys.begin(), keys.end());
    growth_.examples += examples;
    growth_.ids = ids_.size();
    if (growth_.examples <= half_ || growth_.half_ids == 0) growth_.half_ids = ids_.size();
  }
  const IdGrowth& growth() const { return growth_; }

 private:
  const uint64_t half_;
  std::unordered_set<uint64_t> ids_;
  IdGrowth growth_;
};

}  // namespace

Result<IdCounts> count_ids(const std::string& file, const Job& job) {
  DataOptions plain = job.data;
  plain.shuffle = false;
  const std::vector<std::string> files = {file};
  FLUX_ASSIGN_OR_RETURN(const Geometry geometry, scan_good(files, plain, 1, nullptr));
  FLUX_ASSIGN_OR_RETURN(const auto dataset, Dataset::open(geometry, plain));
  IdCounter all(geometry.records());
  std::vector<IdCounter> counters(job.slot_groups.empty() ? 0 : job.key_groups, all);
  Batch batch;
  std::vector<uint8_t> groups;
  for (uint32_t b = 0; b < geometry.blocks.size(); ++b) {
    FLUX_ASSIGN_OR_RETURN(const auto reader, dataset->open_block(b, 0));
    for (uint32_t j = 0; j < geometry.batches_in(b); ++j) {
      FLUX_RETURN_IF_ERROR(reader->read_batch(j, &batch));
      all.add(batch.keys, batch.size);
      find_key_groups(batch, job.slot_groups, &groups);
      for (size_t g = 0; g < counters.size(); ++g) {
        std::vector<uint64_t> keys;
        for (size_t i = 0; i < groups.size(); ++i)
          if (groups[i] == g) keys.push_back(batch.keys[i]);
        counters[g].add(keys, batch.size);
      }
    }
  }
  IdCounts out;
  out.all = all.growth();
  for (const IdCounter& counter : counters) out.groups.push_back(counter.growth());
  return out;
}

Forecast forecast(const RoleJob& role, size_t files, const Trial& trial, const IdCounts& ids) {
  const Job& job = role.job;
  Forecast f;
  f.job = job.name;
  f.passes = job.passes.size();
  f.repeats = uint64_t{job.epochs} * role.graphs.size();
  f.examples = trial.train.lines_in_all;
  f.exact_examples = trial.train.whole;
  f.file_bytes = trial.train.file_bytes;
  f.batch = job.data.batch_size;
  f.batches = (f.examples + f.batch - 1) / f.batch;
  const uint64_t in_pass = f.examples / std::max<size_t>(1, f.passes);
  f.blocks = std::max<uint64_t>(files, f.batches / block_batches(in_pass, f.batch));
  f.ids = ids.all;
  for (const TableOptions& table : job.tables) {
    const uint64_t keys = ids.of(table).at(f.examples);
    f.rows += keys;
    f.row_bytes += static_cast<uint64_t>(static_cast<double>(keys) * bytes_per_row(table));
  }
  f.dense_parameters = role.layout.shape.parameters;
  for (const DenseRange& range : dense_ranges(job, role.graphs))
    if (const auto rule = make_optimizer(range.optimizer); rule.is_ok())
      f.dense_bytes += sizeof(float) * (range.size + rule.value()->state_size(range.size));
  for (size_t p = 0; p < job.phases.size() && job.phases.size() > 1; ++p)
    f.phases.emplace_back(job.phases[p].name, role.graphs[p]->parameter_count());
  if (job.replicas != 0) f.replicas = job.replicas;
  f.worker_bytes = trial.summary.peak_rss_bytes;
  f.trial_examples = trial.train.lines;
  f.examples_per_s = trial.summary.examples_per_s;
  f.threads = trial.summary.threads;
  return f;
}

std::string forecast_text(const Forecast& f) {
  const uint64_t work = f.examples * f.repeats;
  const uint64_t server = f.row_bytes + f.dense_bytes;
  const double seconds = f.examples_per_s > 0 ? static_cast<double>(work) / f.examples_per_s : 0;
  std::string out = fmt::format("job {}: a dry run, nothing is kept\n", f.job);
  out += fmt::format(
      "data    {} examples ({}) in {} pass{}; {} batches of {} in {} blocks, each "
      "trained {} time{}\n",
      about(f.examples, f.exact_examples), human_bytes(f.file_bytes), f.passes,
      f.passes == 1 ? "" : "es", about(f.batches, f.exact_examples), f.batch,
      about(f.blocks, false), f.repeats, f.repeats == 1 ? "" : "s");
  out += fmt::format("model   {} dense parameters; about {} rows over all tables\n",
                     with_commas(f.dense_parameters), with_commas(f.rows));
  for (const auto& [phase, parameters] : f.phases)
    out += fmt::format("        phase {}: {} dense parameters\n", phase, with_commas(parameters));
  out += fmt::format("        ({} ids in {} examples; their number grows as examples^{:.2f})\n",
                     with_commas(f.ids.ids), with_commas(f.ids.examples), f.ids.power());
  out += fmt::format("memory  one process: about {}\n", human_bytes(server + f.worker_bytes));
  out += fmt::format(
      "        as a cluster: servers together about {} ({} replicas), each worker "
      "about {}\n",
      human_bytes(server * f.replicas), f.replicas, human_bytes(f.worker_bytes));
  out += fmt::format("time    about {}: {} examples/s with {} threads, measured over {} examples\n",
                     human_seconds(seconds), with_commas(static_cast<uint64_t>(f.examples_per_s)),
                     f.threads, with_commas(f.trial_examples));
  return out;
}

}  // namespace flux
