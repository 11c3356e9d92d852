// The sub-commands of `flux`. Each takes typed options and returns the exit code: 0, 2 for a
// person's mistake or bad input, 1 for anything else, 130 after Ctrl-C.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flux/base/status.h"

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
  std::string resume_command;  // how to start this run again
};

struct PredictArguments {
  JobArguments job;
  std::vector<std::string> input;
  std::string out = "-";
};

struct GenArguments {
  uint64_t examples = 1'000'000;
  uint64_t seed = 1;
  uint64_t truth_seed = 12345;
  std::string out;
  unsigned threads = 0;
};

struct SimArguments {
  uint64_t first = 1, last = 1;  // seeds
  std::string bug = "none";
  bool verbose = false;
  unsigned threads = 0;  // for many seeds
};

int check_command(const JobArguments& arguments);
int schema_command();
int run_command(const RunArguments& arguments);
int eval_command(const JobArguments& arguments);
int predict_command(const PredictArguments& arguments);
// `path`: an output folder, one checkpoint's folder, or a job file.
int inspect_command(const std::string& path, bool verify);
int gen_criteo_command(const GenArguments& arguments);

// Simulated clusters from seeds (testing/cluster_sim.h).
int sim_command(const SimArguments& arguments);

// Prints "flux: message" to stderr and returns the exit code for it.
int report(const Status& status);

}  // namespace flux
