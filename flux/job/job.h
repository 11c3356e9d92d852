// Job: what one job file says, checked and with every default filled in.
//
// One table (job/schema.cc) describes every field: name, type, range, default, sentence. Checking,
// messages, the JSON Schema and the reference page come from it. An unknown, repeated, ill-typed
// or out-of-range field is refused with file:line:col, the line, a caret, what is allowed and the
// nearest valid name.
// Pure but for load_job(), which reads the file. yaml-cpp and its exceptions stay inside job/.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/cluster/lr_policy.h"
#include "flux/cluster/lr_schedule.h"
#include "flux/cluster/stop_rule.h"
#include "flux/data/dataset.h"
#include "flux/nn/graph.h"
#include "flux/optimizer/optimizer.h"
#include "flux/table/dense_rules.h"
#include "flux/table/sparse_shard.h"

namespace flux {

// One hour, day or fixed set of files.
struct PassSpec {
  std::string name;                // "pass-0" unless named
  std::vector<std::string> train;  // globs
};

// A network of its own over the same tables; a pass trains its data by one phase after the other.
struct PhaseSpec {
  std::string name;
  OptimizerOptions dense_optimizer{.rule = "adam", .lr = 0.001F};  // the job's unless it has one
  std::vector<NodeSpec> layers;                                    // with origins
};

struct Job {
  std::string path;  // of the file it came from
  std::string name = "job";
  std::string output;  // folder for checkpoints, curve and summary
  uint64_t seed = 1;
  uint32_t threads = 0;            // 0: one per core
  std::string precision = "auto";  // auto | fp32 | bf16
  bool deterministic = false;      // same bits every time; makes pull_ahead 0

  DataOptions data;
  std::vector<std::string> test;  // globs; empty: no evaluation
  std::vector<PassSpec> passes;   // at least one; data.train alone makes one pass
  uint32_t epochs = 1;            // per pass
  std::vector<PhaseSpec> phases;  // empty: the network is `layers`, with `dense_optimizer`

  uint32_t shards = 0;  // virtual shards in all; 0: default
  // Slots that are in the same tables make a group of keys (api/model_shape.h).
  uint32_t key_groups = 1;
  std::vector<uint8_t> slot_groups;  // by slot of the model, from 0; empty: one group
  std::vector<TableOptions> tables;
  OptimizerOptions dense_optimizer{.rule = "adam", .lr = 0.001F};
  std::vector<NodeSpec> layers;  // with origins

  std::string mode = "async";   // async | half_async | sync
  uint32_t pull_ahead = 0;      // staleness bound of pulls: batches
  uint32_t push_in_flight = 4;  // staleness bound of pushes: not yet acknowledged
  bool rebalance = true;        // shards of a cluster move away from a server that has too much
  uint32_t replicas = 0;        // of each shard in a cluster; 0: 2 if it has two servers
  uint32_t hung_after = 10;     // seconds that a lost process has to come back, then it is killed
  std::string wire = "fp32";    // fp32 | fp16 | bf16: numbers between workers and servers
  // 0: only at the end of a pass; not given: see main/job_roles.h
  std::optional<float> checkpoint_every_s;
  uint32_t checkpoint_keep = 2;
  uint32_t checkpoint_full_every = 8;  // checkpoints; 1: shards are always saved whole

  double skip_limit = 0.001;          // share of a pass's batches; see cluster/skip_limit.h
  LrScheduleOptions lr_schedule;      // of all learning rates
  LrPolicyOptions on_workers_change;  // what becomes of the learning rate
  StopOptions stop;                   // when to end before the data does
  uint32_t slice_values = 16;         // of each slot of data.slices whose metrics are told apart
};

// `--set a.b=v`: put over the file before it is checked; errors name "--set a.b".
struct Override {
  std::string path;
  std::string value;  // YAML scalar or flow sequence; "x,y" is also taken for a list of strings
};
Result<Override> parse_override(const std::string& text);

// The text of a job file, to be parsed by parse_job() here or in another process.
Result<std::string> read_job_file(const std::string& path);
// All problems of the file at once, one per line block, as one kInvalid.
Result<Job> load_job(const std::string& path, std::span<const Override> overrides);
Result<Job> parse_job(const std::string& path, const std::string& text,
                      std::span<const Override> overrides);
// The networks of a job over examples with these features, one for each phase. Errors carry the
// layer's file:line:col.
using Graphs = std::vector<std::shared_ptr<const Graph>>;
Result<Graphs> build_graphs(const Job& job, const Features& features);
// Of a job with one network.
Result<std::shared_ptr<const Graph>> build_graph(const Job& job, const Features& features);
// "train" for the only one.
std::vector<std::string> phase_names(const Job& job);

// How each part of the flat vector of all graphs is updated.
std::vector<DenseRange> dense_ranges(const Job& job, const Graphs& graphs);

// JSON Schema (draft 2020-12) of a job file, for editors.
std::string job_json_schema();
// Every field and operator for people: docs/using/job.md.
std::string job_reference_markdown();

}  // namespace flux
