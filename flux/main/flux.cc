// The `flux` binary: flags to options to one command.
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "flux/base/cpu.h"
#include "flux/base/text.h"
#include "flux/data/made_truth.h"
#include "flux/main/commands.h"

namespace {

using namespace flux;

constexpr const char* kVersion = "0.1.0";

void add_job_options(CLI::App* command, JobArguments* arguments) {
  command->add_option("job", arguments->job, "job file (YAML)")->required();
  command->add_option("--set", arguments->sets, "set a field over the file, e.g. data.batch=500")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FIELD=VALUE");
}

void add_threads(CLI::App* command, JobArguments* arguments) {
  command->add_option("--threads", arguments->threads, "trainer threads (0: one per core)")
      ->check(CLI::Range(0, 1024));
}

std::string quoted(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The same command without --fresh, which would throw the work away.
std::string resume_command(int argc, char** argv) {
  std::string out;
  for (int i = 0; i < argc; ++i)
    if (std::string(argv[i]) != "--fresh") out += (out.empty() ? "" : " ") + quoted(argv[i]);
  return out;
}

int usage_error(const CLI::App& app, const CLI::ParseError& failure, int argc, char** argv) {
  if (failure.get_exit_code() == 0) return app.exit(failure);  // --help, --version
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  std::string what = failure.what();
  if (argc < 2) what = "no command";
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty())
    what = fmt::format("unknown command '{}'{}", argv[1], did_you_mean(argv[1], names));
  fmt::print(stderr, "flux: {}\ncommands: {}; try 'flux --help'\n", what, join(names, ", "));
  return 2;
}

// Everything the command line can say; one member per sub-command.
struct Arguments {
  RunArguments run;
  JobArguments check, eval;
  PredictArguments predict;
  std::string inspect_path, model;
  bool verify = false;
  GenArguments gen;
  SimArguments sim;
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
  DrillArguments drill;
  CertsArguments certs;
};

void add_hosts(CLI::App* run, RunArguments* to) {
  run->add_option("--hosts", to->hosts,
                  "spread servers and workers over the hosts of this file, one per line, by ssh")
      ->check(CLI::ExistingFile);
  run->add_option("--listen", to->listen, "with --hosts: where they reach the coordinator");
  run->add_option("--ssh", to->ssh, "with --hosts: the program (default: /usr/bin/ssh)");
  run->add_option("--certs", to->certificates, "with --hosts: folder of certificates, on each");
  run->add_flag("--insecure", to->insecure, "with --hosts: without certificates beyond this host");
}

void add_run(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* run = app->add_subcommand("run", "train a job, or go on with it");
  add_job_options(run, &a->run.job);
  add_threads(run, &a->run.job);
  run->add_flag("--fresh", a->run.fresh, "forget what an earlier run left in the output folder");
  run->add_option("--summary", a->run.summary, "write the end's figures as JSON to this file");
  run->add_option("--servers", a->run.servers, "run as a cluster of local processes: servers")
      ->check(CLI::Range(1, 1000));
  run->add_option("--workers", a->run.workers, "run as a cluster of local processes: workers")
      ->check(CLI::Range(1, 1000));
  run->add_option("--http", a->run.http, "status of a cluster, HOST:PORT (default: any port here)");
  run->add_option("--chaos", a->run.chaos, "faults of the network, for tests")->group("");
  run->add_option("--die-on", a->run.die_on, "BLOCK:BATCH, for tests: kills workers")->group("");
  run->add_flag("--drillable", a->run.drillable,
                "obey what flux drill writes into the output folder: partitions, kill points");
  add_hosts(run, &a->run);
  run->callback([=] { *exit_code = run_command(a->run); });
}

void add_job_commands(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* check = app->add_subcommand("check", "check a job file and print its model");
  add_job_options(check, &a->check);
  check->callback([=] { *exit_code = check_command(a->check); });

  CLI::App* schema = app->add_subcommand("schema", "print the JSON Schema of job files");
  schema->callback([=] { *exit_code = schema_command(); });

  CLI::App* models = app->add_subcommand("models", "list ready-made models, or print one");
  models->add_option("name", a->model, "the one to print");
  models->callback([=] { *exit_code = models_command(a->model); });

  CLI::App* eval = app->add_subcommand("eval", "evaluate the newest checkpoint on data.test");
  add_job_options(eval, &a->eval);
  add_threads(eval, &a->eval);
  eval->callback([=] { *exit_code = eval_command(a->eval); });

  CLI::App* predict = app->add_subcommand("predict", "write one probability per record");
  add_job_options(predict, &a->predict.job);
  add_threads(predict, &a->predict.job);
  predict->add_option("--input", a->predict.input, "data files (default: data.test)");
  predict->add_option("--out", a->predict.out, "output file (default: standard output)");
  predict->callback([=] { *exit_code = predict_command(a->predict); });

  CLI::App* inspect = app->add_subcommand("inspect", "show what a checkpoint holds");
  inspect->add_option("path", a->inspect_path, "output folder, checkpoint or job file")->required();
  inspect->add_flag("--verify", a->verify, "read every file and check every byte");
  inspect->callback([=] { *exit_code = inspect_command(a->inspect_path, a->verify); });
}

void add_security(CLI::App* command, SecurityArguments* security) {
  command->add_option("--certs", security->certificates, "folder of certificates (flux certs)");
  command->add_option("--token-file", security->token_file, "file with the cluster's secret");
  command->add_flag("--insecure", security->insecure,
                    "neither certificates nor a secret, even beyond this host");
  command->add_flag("--token-stdin", security->token_stdin, "for roles of other hosts")->group("");
}

void add_etcd(CLI::App* command, CoordinatorArguments* to) {
  CLI::Option* etcd = command->add_option(
      "--etcd", to->etcd, "endpoints of an etcd: wait as a standby until this one leads");
  command
      ->add_option("--etcd-ca", to->etcd_ca,
                   "file of authorities for https:// endpoints (default: the system's)")
      ->needs(etcd);
  CLI::Option* certificate =
      command->add_option("--etcd-cert", to->etcd_cert, "file of a certificate for etcd");
  CLI::Option* key = command->add_option("--etcd-key", to->etcd_key, "file of its key");
  certificate->needs(etcd)->needs(key);
  key->needs(etcd)->needs(certificate);
}

void add_coordinator(CLI::App* app, Arguments* a, int* exit_code) {
  CoordinatorArguments* to = &a->coordinator;
  CLI::App* command = app->add_subcommand("coordinator", "lead a job: one role of a cluster");
  add_job_options(command, &to->job);
  command->add_option("--listen", to->listen, "for servers and workers: tcp:HOST:PORT, unix:PATH")
      ->required();
  command->add_option("--http", to->http, "for status and metrics: HOST:PORT (port 0: any)");
  command->add_option("--servers", to->servers, "wait for so many servers")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option(
          "--server", to->standing,
          "address of a server that stands by itself; give it for each, instead of --servers")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--workers", to->workers, "workers that are meant to come; only for messages")
      ->check(CLI::Range(0, 100000));
  add_security(command, &to->security);
  command->add_flag("--fresh", to->fresh, "forget what an earlier run left in the output folder");
  command->add_option("--summary", to->summary, "write the end's figures as JSON to this file");
  command->add_option("--log", to->log, "file for its log")->group("");
  add_etcd(command, to);
  command->add_option("--supervisor", to->supervisor, "who started it")->group("");
  command->add_option("--resume-command", to->resume_command, "how to go on")->group("");
  command->add_option("--chaos", to->chaos, "faults of the network, for tests")->group("");
  command->add_option("--faults", to->faults, "file of faults, written by a drill")->group("");
  command->callback([=] { *exit_code = coordinator_command(*to); });
}

void add_server_and_worker(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* server = app->add_subcommand("server", "keep a part of the model: a role of a cluster");
  server->add_option("--coordinator", a->server.coordinator,
                     "its address (default: none; serves the jobs of all that name it)");
  server->add_option("--listen", a->server.listen, "for workers: tcp:HOST:PORT, unix:PATH")
      ->required();
  server->add_option("--name", a->server.name, "unique in the job (default: host and process)");
  server->add_option("--threads", a->server.threads, "network threads (0: chosen)")
      ->check(CLI::Range(0, 256));
  add_security(server, &a->server.security);
  server->add_option("--chaos", a->server.chaos, "faults of the network, for tests")->group("");
  server->add_option("--faults", a->server.faults, "file of faults, written by a drill")->group("");
  server->add_option("--die-at", a->server.die_at, "POINT:N, for tests: dies there")->group("");
  server->callback([=] { *exit_code = server_command(a->server); });

  CLI::App* worker = app->add_subcommand("worker", "train blocks of data: a role of a cluster");
  worker->add_option("--coordinator", a->worker.coordinator, "its address")->required();
  worker->add_option("job", a->worker.job.job, "job file; its model must be the coordinator's");
  worker->add_option("--set", a->worker.job.sets, "set a field over the file")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FIELD=VALUE");
  worker->add_option("--name", a->worker.name, "unique in the job (default: host and process)");
  add_threads(worker, &a->worker.job);
  add_security(worker, &a->worker.security);
  worker->add_option("--chaos", a->worker.chaos, "faults of the network, for tests")->group("");
  worker
      ->add_option("--in-flight", a->worker.in_flight,
                   "at most so many pushes and pulls in flight (default: as the job says)")
      ->check(CLI::Range(0, 1024));
  worker->add_option("--faults", a->worker.faults, "file of faults, written by a drill")->group("");
  worker->add_option("--die-on", a->worker.die_on, "BLOCK:BATCH, for tests: dies there")->group("");
  worker->callback([=] { *exit_code = worker_command(a->worker); });
}

void add_target(CLI::App* command, TargetArguments* target) {
  command
      ->add_option("job", target->target,
                   "job file, output folder, or the coordinator's http://...")
      ->required();
  command->add_option("--set", target->sets, "as in flux run")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FIELD=VALUE");
  command->add_option("--certs", target->security.certificates, "folder of certificates");
  command->add_option("--token-file", target->security.token_file, "file with the admin token");
}

void add_watchers(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* status = app->add_subcommand("status", "what a cluster does: rates, queue, every wait");
  add_target(status, &a->status.target);
  status->add_flag("--json", a->status.json, "for programs");
  status->add_flag("--watch", a->status.watch, "again every second until the job ends");
  status->callback([=] { *exit_code = status_command(a->status); });

  CLI::App* logs = app->add_subcommand("logs", "lines of a cluster's roles, by time");
  add_target(logs, &a->logs.target);
  logs->add_option("role", a->logs.role, "one role only: coordinator, server-0, worker-1, ...");
  logs->add_flag("--follow", a->logs.follow, "go on until the job ends");
  logs->callback([=] { *exit_code = logs_command(a->logs); });

  CLI::App* stop = app->add_subcommand("stop", "end a cluster's job with a checkpoint");
  add_target(stop, &a->stop.target);
  stop->add_option("--deadline", a->stop.deadline_s, "seconds to wait for its end");
  stop->callback([=] { *exit_code = stop_command(a->stop); });

  CLI::App* certs = app->add_subcommand("certs", "make a job's own authority and certificates");
  certs->add_option("--out", a->certs.out, "folder to make")->required();
  certs->add_option("--job", a->certs.job, "name of the job");
  certs->add_option("--days", a->certs.days, "how long they are good")
      ->check(CLI::Range(1U, 3650U));
  certs->callback([=] { *exit_code = certs_command(a->certs); });
}

void add_operators(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* drain = app->add_subcommand("drain", "move everything off a server, or end a worker");
  add_target(drain, &a->drain.target);
  drain->add_option("node", a->drain.node, "its name: server-1, worker-0")->required();
  drain->callback([=] { *exit_code = drain_command(a->drain); });

  CLI::App* scale = app->add_subcommand("scale", "change how many workers and servers a job has");
  add_target(scale, &a->scale.target);
  scale->add_option("--workers", a->scale.workers, "how many there are to be")
      ->check(CLI::Range(0, 4096));
  scale->add_option("--servers", a->scale.servers, "how many there are to be")
      ->check(CLI::Range(1, 4096));
  scale->callback([=] { *exit_code = scale_command(a->scale); });

  CLI::App* move = app->add_subcommand("move", "put the primary of a shard on a server");
  add_target(move, &a->move.target);
  move->add_option("shard", a->move.shard, "its number")->required();
  move->add_option("server", a->move.server, "name of the server")->required();
  move->callback([=] { *exit_code = move_command(a->move); });
}

void add_drill_faults(CLI::App* drill, DrillArguments* to) {
  const auto fault = [&](const char* flag, std::vector<std::string>* words, const char* help) {
    drill->add_option(flag, *words, help)->take_all()->allow_extra_args(false);
  };
  fault("--kill", &to->kill, "worker, worker:1, server:0+server:1, coordinator, any, all");
  fault("--pause", &to->pause, "stop and continue: worker:0");
  fault("--oom", &to->oom, "take its memory away: worker:0");
  fault("--partition", &to->partition, "cut: worker:0-server:1, one way: worker:0>server:1");
  fault("--drain", &to->drain, "ask to leave: worker:0, server:1");
  fault("--scale", &to->scale, "workers=1..8 (drawn), servers=2,4,3 (in turn)");
  fault("--at", &to->at, "servers die at these kill points: after_apply,seal or all");
}

void add_drill(CLI::App* app, Arguments* a, int* exit_code) {
  DrillArguments* to = &a->drill;
  CLI::App* drill =
      app->add_subcommand("drill", "kill, pause and cut a job; count what came of it");
  add_target(drill, &to->target);
  add_drill_faults(drill, to);
  drill->add_option("--every", to->every, "time from one fault to the next (30s, 500ms, 2m)");
  drill->add_option("--for", to->for_text, "no fault after this time");
  drill->add_option("--times", to->times, "so many faults")->check(CLI::Range(1, 1'000'000));
  drill->add_option("--jitter", to->jitter, "moments move by up to this share of --every")
      ->check(CLI::Range(0.0, 0.5));
  drill->add_option("--seed", to->seed, "the same seed, the same plan");
  drill->add_option("--pause-for", to->pause_for, "length of a pause");
  drill->add_option("--partition-for", to->partition_for, "length of a partition");
  drill->add_option("--at-wait", to->at_wait, "how long a kill point stays armed");
  drill->add_option("--at-pass", to->pass_max, "die at a pass of the point up to this one");
  drill->add_option("--out", to->out, "folder for drill.json and timeline.svg");
  drill->add_option("--baseline", to->baseline, "summary.json of an undisturbed run");
  drill->add_flag("--vanish", to->vanish, "what a partition cuts off is lost, not only late");
  drill->add_flag("--no-wait", to->no_wait, "end when the last fault is repaired");
  drill->add_flag("--quiet", to->quiet, "tell only the end");
  drill->add_flag("--run", to->run, "start the job itself");
  drill->add_flag("--fresh", to->fresh, "with --run: forget what an earlier run left");
  drill->add_option("--servers", to->servers, "with --run")->check(CLI::Range(1, 1000));
  drill->add_option("--workers", to->workers, "with --run")->check(CLI::Range(1, 1000));
  drill->add_option("--threads", to->threads, "with --run: per worker")->check(CLI::Range(0, 1024));
  drill->add_option("--job-log", to->job_log, "with --run: file for the job's own output");
  drill->callback([=] { *exit_code = drill_command(*to); });
}

void add_gen_options(CLI::App* command, Arguments* a) {
  command->add_option("--examples", a->gen.examples, "lines")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  command->add_option("--seed", a->gen.seed, "another seed, other examples of the same truth");
  command->add_option("--truth-seed", a->gen.truth_seed, "seed of the hidden truth");
  command->add_option("--threads", a->gen.threads, "threads (0: one per core)")
      ->check(CLI::Range(0U, 1024U));
  command->add_option("--out", a->gen.out, "file to write")->required();
}

void add_data(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* data = app->add_subcommand("data", "make data");
  data->require_subcommand(1);
  CLI::App* gen = data->add_subcommand("gen", "generate data with a known truth");
  gen->require_subcommand(1);
  CLI::App* criteo = gen->add_subcommand("criteo", "Criteo-like TSV (plain or .gz)");
  add_gen_options(criteo, a);
  criteo->callback([=] { *exit_code = gen_criteo_command(a->gen); });
  CLI::App* feasign = gen->add_subcommand("feasign", "feasign lines of a kind (plain or .gz)");
  std::string kinds = "what the data rewards:";
  for (const std::string& kind : made_truth_kinds())
    kinds += fmt::format("\n{}: {}", kind, made_truth_doc(kind));
  feasign->add_option("--kind", a->gen.kind, kinds)->required();
  add_gen_options(feasign, a);
  feasign->callback([=] { *exit_code = gen_feasign_command(a->gen); });
}

// "5..100", "5".
bool parse_seeds(const std::string& text, SimArguments* out) {
  const size_t dots = text.find("..");
  const auto number = [](const std::string& word, uint64_t* value) {
    const bool digits = !word.empty() && word.size() < 19 &&
                        word.find_first_not_of("0123456789") == std::string::npos;
    if (digits) *value = std::stoull(word);
    return digits;
  };
  if (dots == std::string::npos) {
    if (!number(text, &out->first)) return false;
    out->last = out->first;
    return true;
  }
  return number(text.substr(0, dots), &out->first) && number(text.substr(dots + 2), &out->last);
}

void add_sim(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* sim = app->add_subcommand("sim", "simulate a cluster under faults, from a seed");
  CLI::Option* seed = sim->add_option("--seed", a->seeds, "one run, the same every time");
  sim->add_option("--seeds", a->seeds, "many runs: FIRST..LAST")->excludes(seed);
  sim->add_option("--bug", a->sim.bug, "plant a bug, to see it found");
  sim->add_option("--threads", a->sim.threads, "threads for many runs (0: one per core)")
      ->check(CLI::Range(0U, 1024U));
  sim->add_flag("--verbose", a->sim.verbose, "tell the story of a run");
  sim->callback([=] {
    *exit_code = a->seeds.empty() || parse_seeds(a->seeds, &a->sim)
                     ? sim_command(a->sim)
                     : report(invalid("'{}': give a number, or FIRST..LAST", a->seeds));
  });
}

// Unwinding out of one thread would wait for others that never end, so a process without memory
// says so and goes at once: whoever watches it must not have to wait.
void out_of_memory() {
  constexpr char kText[] = "flux: out of memory\n";
  const ssize_t ignored = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  (void)ignored;
  ::_exit(1);
}

int run_main(int argc, char** argv) {
  if (!cpu_has_baseline()) {
    std::fputs("flux: this CPU lacks AVX2, FMA or BMI2 (x86-64-v3), which flux needs\n", stderr);
    return 2;
  }
  CLI::App app{"flux trains very large sparse models and does not stop.", "flux"};
  app.set_version_flag("--version", std::string("flux ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  flux data gen criteo --examples 100000 --out data/train.tsv\n"
      "  flux run examples/ctr_dnn/job.yaml --set data.train=data/train.tsv\n"
      "  flux run examples/ctr_dnn/job.yaml --servers 2 --workers 3\n"
      "Running a job again goes on where it stopped.");
  int exit_code = 0;
  Arguments arguments;
  arguments.run.resume_command = resume_command(argc, argv);
  arguments.coordinator.resume_command = arguments.run.resume_command;
  add_run(&app, &arguments, &exit_code);
  add_job_commands(&app, &arguments, &exit_code);
  add_coordinator(&app, &arguments, &exit_code);
  add_server_and_worker(&app, &arguments, &exit_code);
  add_watchers(&app, &arguments, &exit_code);
  add_operators(&app, &arguments, &exit_code);
  add_drill(&app, &arguments, &exit_code);
  add_data(&app, &arguments, &exit_code);
  add_sim(&app, &arguments, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return usage_error(app, failure, argc, argv);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(out_of_memory);
  try {
    return run_main(argc, argv);
  } catch (const std::exception& failure) {  // none is expected: the core throws nothing
    std::fprintf(stderr, "flux: %s\n", failure.what());
    return 1;
  }
}
