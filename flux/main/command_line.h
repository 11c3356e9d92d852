// The command line of `flux`: every command with its flags and sentences, said once, to the parser.
// Help comes from it, and completion and man pages (command_table.h).
// `arguments` and `exit_code` must outlive the parsing: a command runs while it is parsed.
#pragma once

#include <string>
#include <vector>

#include "flux/main/commands.h"

namespace CLI {
class App;
}

namespace flux {

constexpr const char* kVersion = "0.1.0";

// Everything the command line can say; one member per sub-command.
struct Arguments {
  RunArguments run;
  JobArguments check;
  EvalArguments eval;
  PredictArguments predict;
  std::string inspect_path, model;
  bool verify = false;
  GraphArguments graph;
  std::string shell;
  std::vector<std::string> man_of;  // words
  GenArguments gen;
  DataArguments data;
  CorpusArguments corpus;
  VocabArguments vocab;
  VectorsArguments vectors;
  SimArguments sim;
  ReplayArguments replay;
  std::string seeds;
  CoordinatorArguments coordinator;
  ServerArguments server;
  WorkerArguments worker;
  StatusArguments status;
  LogsArguments logs;
  StopArguments stop;
  DrainArguments drain;
  ScaleArguments scale;
  MoveArguments move;
  RebalanceArguments rebalance;
  DrillArguments drill;
  CertsArguments certs;
};

// run, check, graph, ...: commands that take a job file; and the roles of a cluster.
void add_job_commands(CLI::App* app, Arguments* arguments, int* exit_code);
void add_role_commands(CLI::App* app, Arguments* arguments, int* exit_code);
// Commands about a job that runs: status, logs, stop, drain, scale, move,
// rebalance, drill.
void add_running_commands(CLI::App* app, Arguments* arguments, int* exit_code);
// Everything else: certificates, data, the simulator, completion, man pages.
void add_tool_commands(CLI::App* app, Arguments* arguments, int* exit_code);

}  // namespace flux
