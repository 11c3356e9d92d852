// The sub-commands of `flux`. Each takes typed options and returns the exit code: 0, 2 for a
// person's mistake or bad input, 1 for anything else, 130 after Ctrl-C.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/drift.h"
#include "flux/main/summary.h"

namespace flux {

struct JobArguments {
  std::string job;                // path of the YAML file
  std::vector<std::string> sets;  // "a.b=v"
  int threads = -1;               // -1: as the job says
};

struct RunArguments {
  JobArguments job;
  bool fresh = false;
  std::string summary;         // file for the JSON summary
  bool json = false;           // events for programs on standard output
  bool dry_run = false;        // only say what it would need
  uint32_t smoke = 0;          // not 0: only try so many batches, in a folder of its own
  std::string resume_command;  // how to start this run again
  // A cluster of local processes; 0 servers and workers: everything in this process.
  uint32_t servers = 0;
  uint32_t workers = 0;
  std::string http;        // address of the coordinator's HTTP interface
  std::string chaos;       // faults for tests (rpc/chaos.h)
  std::string die_on;      // of workers, for tests
  bool drillable = false;  // roles obey <output>/cluster/faults.txt, which `flux drill` writes
  // Roles on other hosts.
  std::string hosts;                 // file with one host per line
  std::string ssh = "/usr/bin/ssh";  // program
  std::string listen;                // of the coordinator, where the hosts reach it
  std::string certificates;          // folder, at the same place on every host
  bool insecure = false;
};

// How the ends of a role's connections prove who they are.
struct SecurityArguments {
  std::string certificates;  // folder made by `flux certs`
  std::string token_file;
  bool insecure = false;
  bool token_stdin = false;  // the token is the first line of standard input (main/leash.h)
};

struct CoordinatorArguments {
  JobArguments job;
  SecurityArguments security;
  std::string listen;
  std::string http = "127.0.0.1:0";
  uint32_t servers = 1;
  std::vector<std::string> standing;  // addresses of servers that stand by themselves
  uint32_t workers = 1;               // for messages only
  bool fresh = false;
  std::string summary;
  bool json = false;
  std::string resume_command;
  std::string log;  // file for its lines with time and role; empty: <output>/cluster/logs
  int64_t supervisor = 0;
  std::string etcd;                          // endpoints: standbys wait until they lead
  std::string etcd_ca, etcd_cert, etcd_key;  // files, for https:// endpoints
  std::string chaos, faults;
};

struct ServerArguments {
  SecurityArguments security;
  std::string coordinator, listen, name;
  uint32_t threads = 0;  // of the network; 0: chosen
  std::string chaos, faults;
  std::string die_at;  // POINT:N (base/kill_point.h); empty: never
};

struct WorkerArguments {
  SecurityArguments security;
  std::string coordinator, name;
  JobArguments job;  // optional: its model must be the coordinator's
  std::string chaos, faults;
  uint32_t in_flight = 0;  // at most so many pushes and pulls ahead; 0: as the job says
  std::string die_on;      // BLOCK:BATCH, for tests: dies when it begins that batch
};

// A job that runs somewhere: its file, its output folder, or its coordinator's HTTP address.
struct TargetArguments {
  std::string target;
  std::vector<std::string> sets;
  SecurityArguments security;
};

struct StatusArguments {
  TargetArguments target;
  bool json = false;
  bool watch = false;
};

struct LogsArguments {
  TargetArguments target;
  std::string role;
  bool follow = false;
};

struct StopArguments {
  TargetArguments target;
  uint32_t deadline_s = 300;
};

// Faults on purpose against a job that runs, or that the drill runs itself.
struct DrillArguments {
  TargetArguments target;
  std::vector<std::string> kill, pause, oom, partition, drain, scale, at;  // main/drill_plan.h
  std::string every = "30s", for_text;
  std::string pause_for = "30s", partition_for = "5s", at_wait = "15s";
  uint32_t times = 0;      // 0: until the job ends
  uint32_t pass_max = 20;  // of kill points
  double jitter = 0;
  uint64_t seed = 1;
  std::string out;       // folder for drill.json and timeline.svg; empty: the job's output
  std::string baseline;  // summary.json of an undisturbed run
  bool vanish = false;   // what a partition cuts off is lost, not only late
  bool no_wait = false;  // end when the last fault is repaired, not with the job
  bool quiet = false;    // only the end is told
  bool run = false;      // start the job
  bool fresh = false;
  uint32_t servers = 2, workers = 2;
  int threads = -1;
  std::string job_log;  // file for the job's own output; empty: shown
};

// What an operator asks of a job that runs.
struct DrainArguments {
  TargetArguments target;
  std::string node;
};
struct ScaleArguments {
  TargetArguments target;
  int64_t workers = -1, servers = -1;  // -1: no change
};
struct MoveArguments {
  TargetArguments target;
  uint32_t shard = 0;
  std::string server;
};

struct RebalanceArguments {
  TargetArguments target;
  bool dry_run = false;
};

struct CertsArguments {
  std::string out;
  std::string job = "flux";
  uint32_t days = 30;
};

struct EvalArguments {
  JobArguments job;
  std::string checkpoint;  // empty: the newest (chosen_checkpoint.h)
  bool json = false;
};

struct GraphArguments {
  JobArguments job;
  std::string out = "-";
};

struct PredictArguments {
  JobArguments job;
  std::string checkpoint;  // empty: the newest
  std::string phase;       // empty: the first
  std::vector<std::string> input;
  bool no_labels = false;  // of the input's lines
  bool header = false;     // names of heads as the first line
  std::string out = "-";
};

struct GenArguments {
  std::string kind;  // of feasign lines
  uint64_t examples = 1'000'000;
  uint64_t seed = 1;
  uint64_t truth_seed = 12345;
  std::string out;
  unsigned threads = 0;
  // Data that drifts (data/drift.h): `out` is a folder then.
  Drift drift;  // no hours: a single file
  std::string start = "2026-01-01T00";
  bool gzip = false;
};

struct CorpusArguments {
  GenArguments gen;
  uint32_t vocabulary = 20'000;
  uint32_t topics = 400;
  std::string truth;  // file for which word belongs to which topic; empty: none
};

struct VocabArguments {
  std::vector<std::string> files;  // globs
  std::string out;
  uint64_t min_count = 5;
  unsigned threads = 0;
};

struct VectorsArguments {
  JobArguments job;
  std::string checkpoint;  // empty: the newest
  std::string table;       // empty: the first one that the model reads
  std::string vocabulary;  // empty: data.vocabulary
  bool whole = false;      // rows of skip_gram_loss: both halves
  std::string out = "-";
};

struct SimArguments {
  uint64_t first = 1, last = 1;  // seeds
  std::string bug = "none";
  bool verbose = false;
  unsigned threads = 0;  // for many seeds
};

// A real job, trained with gradients that are so many batches old (main/replay.h).
struct ReplayArguments {
  JobArguments job;
  std::string staleness = "0";     // batches: "0,16,64"
  uint32_t examples_per_push = 0;  // 0: as the job says
  std::string seed;                // empty: as the job says
  double threshold = 0.001;        // drop of the AUC that is too much
  double memory_gb = 4;
  double rows_power = 0, dense_power = 0, compensation = 0;
  bool json = false;
};

struct Job;  // job/job.h

int check_command(const JobArguments& arguments);
int schema_command();
int run_command(const RunArguments& arguments);
// A run that is only tried: what would it need, and is it right?
int dry_run_command(const Job& job);
int smoke_command(const Job& job, const RunArguments& arguments);
int graph_command(const GraphArguments& arguments);
int eval_command(const EvalArguments& arguments);
int predict_command(const PredictArguments& arguments);
// `path`: an output folder, one checkpoint's folder, or a job file.
int inspect_command(const std::string& path, bool verify);
int coordinator_command(const CoordinatorArguments& arguments);
int server_command(const ServerArguments& arguments);
int worker_command(const WorkerArguments& arguments);
int status_command(const StatusArguments& arguments);
int logs_command(const LogsArguments& arguments);
int stop_command(const StopArguments& arguments);
int drill_command(const DrillArguments& arguments);
int drain_command(const DrainArguments& arguments);
int scale_command(const ScaleArguments& arguments);
int move_command(const MoveArguments& arguments);
int rebalance_command(const RebalanceArguments& arguments);
int certs_command(const CertsArguments& arguments);
// Data to look at or to convert: files, read as a job says or as they look.
struct DataArguments {
  std::vector<std::string> files;
  std::string job;
  std::vector<std::string> sets;
  uint64_t records = 10;  // head: to show; validate: problems to tell
  bool json = false;
  std::string to = "blocks", out;
  unsigned threads = 0;  // 0: one per core
};
int data_head_command(const DataArguments& arguments);
int data_stats_command(const DataArguments& arguments);
int data_validate_command(const DataArguments& arguments);
int data_convert_command(const DataArguments& arguments);
int gen_criteo_command(const GenArguments& arguments);
int gen_feasign_command(const GenArguments& arguments);
int gen_corpus_command(const CorpusArguments& arguments);
int vocab_command(const VocabArguments& arguments);
int vectors_command(const VectorsArguments& arguments);
// Lists the ready-made models, or prints the one of this name.
int models_command(const std::string& name);

// Simulated clusters from seeds (testing/cluster_sim.h).
int sim_command(const SimArguments& arguments);
int replay_command(const ReplayArguments& arguments);

// The end of a training: writes the summary to `file` (if named), tells a failure (as an event too,
// if `json`) and gives the exit code.
int end_of_run(const Result<Summary>& summary, const std::string& file, bool json);
// Prints "flux: message" to stderr and returns the exit code for it.
int report(const Status& status);

}  // namespace flux
