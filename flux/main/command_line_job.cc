#include <string>

#include <CLI/CLI.hpp>

#include "flux/base/text.h"
#include "flux/main/command_line.h"
#include "flux/main/ready_models.h"

namespace flux {
namespace {

void add_job_options(CLI::App* command, JobArguments* arguments) {
  command->add_option("job", arguments->job, "job file (YAML)")->required();
  command->add_option("--set", arguments->sets, "set a field over the file, e.g. data.batch=500")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FIELD=VALUE");
}

void add_threads(CLI::App* command, JobArguments* arguments) {
  command
      ->add_option("--threads", arguments->threads,
                   "threads that compute each batch together, per worker (0: one per core)")
      ->check(CLI::Range(0, 4096));
}

void add_checkpoint(CLI::App* command, std::string* checkpoint) {
  command
      ->add_option("--checkpoint", *checkpoint,
                   "which: newest, best (that a stop condition found), a number, or its folder")
      ->type_name("newest|best|NUMBER|PATH");
}

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
  CLI::Option* summary =
      run->add_option("--summary", a->run.summary, "write the end's figures as JSON to this file");
  run->add_option("--servers", a->run.servers, "run as a cluster of local processes: servers")
      ->check(CLI::Range(1, 1000));
  run->add_option("--workers", a->run.workers, "run as a cluster of local processes: workers")
      ->check(CLI::Range(1, 1000));
  run->add_option("--http", a->run.http, "status of a cluster, HOST:PORT (default: any port here)");
  CLI::Option* json =
      run->add_flag("--json", a->run.json, "events for programs, one JSON object per line");
  CLI::Option* dry = run->add_flag("--dry-run", a->run.dry_run,
                                   "say what memory and time it would need; train nothing");
  dry->excludes(summary)->excludes(json);  // there is no end, and no event
  run->add_option("--smoke", a->run.smoke,
                  "try so many batches in a folder of its own: is the job right?")
      ->check(CLI::Range(1, 100000))
      ->excludes(dry);
  run->add_option("--chaos", a->run.chaos, "faults of the network, for tests")->group("");
  run->add_option("--die-on", a->run.die_on, "BLOCK:BATCH, for tests: kills workers")->group("");
  run->add_flag("--drillable", a->run.drillable,
                "obey what flux drill writes into the output folder: partitions, kill points");
  add_hosts(run, &a->run);
  run->callback([=] { *exit_code = run_command(a->run); });
}

void add_model_commands(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* check = app->add_subcommand("check", "check a job file and print its model");
  add_job_options(check, &a->check);
  check->callback([=] { *exit_code = check_command(a->check); });

  CLI::App* graph = app->add_subcommand("graph", "draw the network of a job file (SVG)");
  add_job_options(graph, &a->graph.job);
  graph->add_option("--out", a->graph.out, "output file (default: standard output)");
  graph->callback([=] { *exit_code = graph_command(a->graph); });

  CLI::App* schema = app->add_subcommand("schema", "print the JSON Schema of job files");
  schema->callback([=] { *exit_code = schema_command(); });

  CLI::App* models = app->add_subcommand("models", "list ready-made models, or print one");
  models->add_option("name", a->model, "the one to print")
      ->type_name(join(ready_model_names(), "|"));
  models->callback([=] { *exit_code = models_command(a->model); });

  CLI::App* eval = app->add_subcommand("eval", "evaluate a checkpoint on data.test");
  add_job_options(eval, &a->eval.job);
  add_checkpoint(eval, &a->eval.checkpoint);
  add_threads(eval, &a->eval.job);
  eval->add_flag("--json", a->eval.json, "every metric, for programs");
  eval->callback([=] { *exit_code = eval_command(a->eval); });

  CLI::App* predict =
      app->add_subcommand("predict", "write predictions: a line per record, a column per head");
  add_job_options(predict, &a->predict.job);
  add_checkpoint(predict, &a->predict.checkpoint);
  add_threads(predict, &a->predict.job);
  predict->add_option("--input", a->predict.input, "data files (default: data.test)");
  predict->add_flag("--no-labels", a->predict.no_labels,
                    "the lines of the input have no labels; no metrics are told");
  predict->add_flag("--header", a->predict.header,
                    "begin with a line that names the heads of the model");
  predict->add_option("--out", a->predict.out, "output file (default: standard output)");
  predict->add_option("--phase", a->predict.phase,
                      "whose network predicts, in a job with phases (default: the first)");
  predict->callback([=] { *exit_code = predict_command(a->predict); });

  CLI::App* vectors = app->add_subcommand("vectors", "write the vectors of words, a line each");
  add_job_options(vectors, &a->vectors.job);
  add_checkpoint(vectors, &a->vectors.checkpoint);
  vectors->add_option("--table", a->vectors.table, "whose rows (default: the model's first)");
  vectors->add_option("--vocabulary", a->vectors.vocabulary, "words (default: data.vocabulary)");
  vectors->add_flag("--whole", a->vectors.whole, "whole rows, also their half as contexts");
  vectors->add_option("--out", a->vectors.out, "output file (default: standard output)");
  vectors->callback([=] { *exit_code = vectors_command(a->vectors); });

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
  command->add_flag("--json", to->json, "events for programs, one JSON object per line");
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

}  // namespace

void add_job_commands(CLI::App* app, Arguments* arguments, int* exit_code) {
  add_run(app, arguments, exit_code);
  add_model_commands(app, arguments, exit_code);
}

void add_role_commands(CLI::App* app, Arguments* arguments, int* exit_code) {
  add_coordinator(app, arguments, exit_code);
  add_server_and_worker(app, arguments, exit_code);
}

}  // namespace flux
