#include <cmath>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "flux/base/text.h"
#include "flux/data/made_truth.h"
#include "flux/data/text/writers.h"
#include "flux/main/command_line.h"
#include "flux/main/command_table.h"
#include "flux/main/completion.h"
#include "flux/main/manual.h"

namespace flux {
namespace {

// As CLI::Range, which lets NaN through.
CLI::Validator number_in(double low, double high) {
  const CLI::Range range(low, high);
  return {[range](std::string& text) -> std::string {
            double value = 0;
            if (CLI::detail::lexical_cast(text, value) && std::isnan(value))
              return "Value " + text + " is no number";
            return range(text);
          },
          range.get_description()};
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
  stop->add_option("--deadline", a->stop.deadline_s,
                   fmt::format("seconds to wait for its end (default: {})", a->stop.deadline_s));
  stop->callback([=] { *exit_code = stop_command(a->stop); });
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

  CLI::App* rebalance =
      app->add_subcommand("rebalance", "move a shard off the server with the most load, now");
  add_target(rebalance, &a->rebalance.target);
  rebalance->add_flag("--dry-run", a->rebalance.dry_run, "only say what would move");
  rebalance->callback([=] { *exit_code = rebalance_command(a->rebalance); });
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
  const auto time = [&](const char* flag, std::string* value, const char* help) {
    drill->add_option(flag, *value, fmt::format("{} (default: {})", help, *value));
  };
  time("--every", &to->every, "time from one fault to the next: 30s, 500ms, 2m");
  drill->add_option("--for", to->for_text, "no fault after this time");
  drill->add_option("--times", to->times, "so many faults")->check(CLI::Range(1, 1'000'000));
  drill->add_option("--jitter", to->jitter, "moments move by up to this share of --every")
      ->check(CLI::Range(0.0, 0.5));
  drill->add_option("--seed", to->seed, "the same seed, the same plan");
  time("--pause-for", &to->pause_for, "length of a pause");
  time("--partition-for", &to->partition_for, "length of a partition");
  time("--at-wait", &to->at_wait, "how long a kill point stays armed");
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
  drill->add_option("--threads", to->threads, "with --run: per worker")->check(CLI::Range(0, 4096));
  drill->add_option("--job-log", to->job_log, "with --run: file for the job's own output");
  drill->callback([=] { *exit_code = drill_command(*to); });
}

void add_gen_options(CLI::App* command, GenArguments* gen) {
  command->add_option("--examples", gen->examples, "lines")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  command->add_option("--seed", gen->seed, "another seed, other examples of the same truth");
  command->add_option("--truth-seed", gen->truth_seed, "seed of the hidden truth");
  command->add_option("--threads", gen->threads, "threads (0: one per core)")
      ->check(CLI::Range(0U, 1024U));
  command->add_option("--out", gen->out, "file to write; -: standard output")->required();
}

// Data that changes from hour to hour.
void add_drift_options(CLI::App* command, GenArguments* gen) {
  CLI::Option* hours = command->add_option(
      "--hours", gen->drift.hours, "a file per hour, in a folder per day, under the folder --out");
  hours->check(CLI::Range(1U, kDriftHoursMax));
  const auto add = [&](const char* name, auto* value, const char* help) {
    command->add_option(name, *value, help)->needs(hours);
  };
  add("--start", &gen->start, "first hour (2026-01-01T00)");
  add("--drift", &gen->drift.turn, "how fast the truth changes, in radians per hour (0.02)");
  add("--churn", &gen->drift.churn, "share of the ids that are renewed per hour (0.01)");
  add("--wave", &gen->drift.wave, "rise and fall of the logit in a day (0.5)");
  command->add_flag("--gz", gen->gzip, "with --hours: files are compressed")->needs(hours);
}

void add_vocab(CLI::App* data, Arguments* a, int* exit_code) {
  CLI::App* vocab = data->add_subcommand("vocab", "count the words of sentences");
  vocab->add_option("files", a->vocab.files, "files of sentences, or globs")->required();
  vocab->add_option("--out", a->vocab.out, "file to write; -: standard output")->required();
  vocab->add_option("--min-count", a->vocab.min_count, "leave out words that come less often")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  vocab->add_option("--threads", a->vocab.threads, "threads, one per file (0: one per core)")
      ->check(CLI::Range(0U, 1024U));
  vocab->callback([=] { *exit_code = vocab_command(a->vocab); });
}

CLI::App* add_data_tool(CLI::App* data, const char* name, const char* sentence, Arguments* a) {
  CLI::App* tool = data->add_subcommand(name, sentence);
  tool->add_option("files", a->data.files, "data files; none: those that the job trains on");
  tool->add_option("--job", a->data.job,
                   "job file that says how they are read (else: as they look)");
  tool->add_option("--set", a->data.sets, "change a field of the job: data.batch=500")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FIELD=VALUE");
  tool->add_option("--threads", a->data.threads, "threads (0: one per core)")
      ->check(CLI::Range(0U, 1024U));
  return tool;
}

void add_count(CLI::App* tool, const char* flag, Arguments* a, const char* sentence) {
  tool->add_option(flag, a->data.records, sentence)
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40));
}

void add_data_tools(CLI::App* data, Arguments* a, int* exit_code) {
  CLI::App* head =
      add_data_tool(data, "head", "print the first records, as a person would write them", a);
  add_count(head, "-n,--records", a, "how many");
  head->callback([=] { *exit_code = data_head_command(a->data); });
  CLI::App* stats = add_data_tool(data, "stats", "count what is in the data, slot by slot", a);
  stats->add_flag("--json", a->data.json, "as JSON");
  stats->callback([=] { *exit_code = data_stats_command(a->data); });
  CLI::App* validate = add_data_tool(data, "validate", "look at every record for mistakes", a);
  add_count(validate, "-n,--problems", a, "how many to tell");
  validate->callback([=] { *exit_code = data_validate_command(a->data); });
  CLI::App* convert = add_data_tool(data, "convert", "write the data in another format", a);
  convert->add_option("--to", a->data.to,
                      "blocks (fast to read), parquet, " + join(text_writer_names(), ", "));
  convert->add_option("--out", a->data.out, "file to write; -: standard output (lines only)")
      ->required();
  convert->callback([=] { *exit_code = data_convert_command(a->data); });
}

void add_data(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* data = app->add_subcommand("data", "make, look at and convert data");
  data->require_subcommand(1);
  add_data_tools(data, a, exit_code);
  CLI::App* gen = data->add_subcommand("gen", "generate data with a known truth");
  gen->require_subcommand(1);
  CLI::App* criteo = gen->add_subcommand("criteo", "Criteo-like TSV (plain, .gz or .zst)");
  add_gen_options(criteo, &a->gen);
  add_drift_options(criteo, &a->gen);
  criteo->callback([=] { *exit_code = gen_criteo_command(a->gen); });
  CLI::App* feasign =
      gen->add_subcommand("feasign", "feasign lines of a kind (plain, .gz or .zst)");
  std::string kinds = "what the data rewards:";
  for (const std::string& kind : made_truth_kinds())
    kinds += fmt::format("\n{}: {}", kind, made_truth_doc(kind));
  feasign->add_option("--kind", a->gen.kind, kinds)
      ->required()
      ->type_name(join(made_truth_kinds(), "|"));
  add_gen_options(feasign, &a->gen);
  add_drift_options(feasign, &a->gen);
  feasign->callback([=] { *exit_code = gen_feasign_command(a->gen); });
  CLI::App* corpus =
      gen->add_subcommand("corpus", "sentences of a made language (plain, .gz or .zst)");
  add_gen_options(corpus, &a->corpus.gen);
  corpus->add_option("--vocabulary", a->corpus.vocabulary, "different words");
  corpus->add_option("--topics", a->corpus.topics, "groups of words that come together");
  corpus->add_option("--truth", a->corpus.truth, "file to write with the topic of each word");
  corpus->callback([=] { *exit_code = gen_corpus_command(a->corpus); });
  add_vocab(data, a, exit_code);
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

// Gradients that are old, in the training of a real job.
void add_replay_options(CLI::App* sim, ReplayArguments* to, CLI::Option* seeds, CLI::Option* bug) {
  CLI::Option* train = sim->add_option(
      "--train", to->job.job,
      "train this job on one core with gradients of a known age: the quality of many workers");
  train->type_name("JOB")->excludes(seeds)->excludes(bug);
  const auto add = [&](const char* name, auto* value, const char* help) {
    return sim->add_option(name, *value, help)->needs(train);
  };
  add("--staleness", &to->staleness, "with --train: batches that a gradient is old: 0,16,64");
  add("--examples-per-push", &to->examples_per_push, "with --train: cut batches to this size")
      ->check(CLI::Range(1, 1'000'000));
  add("--threshold", &to->threshold, "with --train: drop of the AUC that is too much (0.001)")
      ->check(number_in(0.0, 1.0));
  add("--memory-gb", &to->memory_gb, "with --train: for gradients that wait (4)")
      ->check(number_in(0.001, 4096.0));
  add("--rows-lr-by-age", &to->rows_power,
      "with --train: learning rate of rows / (1 + staleness)^POWER")
      ->type_name("POWER")
      ->check(number_in(0.0, 2.0));
  add("--dense-lr-by-age", &to->dense_power, "with --train: the same of dense values")
      ->type_name("POWER")
      ->check(number_in(0.0, 2.0));
  add("--compensate", &to->compensation,
      "with --train: g + LAMBDA |g| (w now - w then) instead of the gradient g")
      ->type_name("LAMBDA")
      ->check(number_in(-1e6, 1e6));
  sim->add_option("--set", to->job.sets, "with --train: as in flux run")
      ->needs(train)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FIELD=VALUE");
  sim->add_flag("--json", to->json, "with --train: for programs")->needs(train);
}

void add_sim(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* sim = app->add_subcommand(
      "sim", "simulate a cluster under faults, or its training with old gradients, from a seed");
  CLI::Option* seed = sim->add_option("--seed", a->seeds, "one run, the same every time");
  CLI::Option* seeds = sim->add_option("--seeds", a->seeds, "many runs: FIRST..LAST");
  seeds->excludes(seed);
  CLI::Option* bug = sim->add_option("--bug", a->sim.bug, "plant a bug, to see it found");
  sim->add_option("--threads", a->sim.threads, "threads for many runs (0: one per core)")
      ->check(CLI::Range(0U, 1024U));
  sim->add_flag("--verbose", a->sim.verbose, "tell the story of a run");
  add_replay_options(sim, &a->replay, seeds, bug);
  sim->callback([=] {
    a->replay.seed = a->seeds;
    if (!a->replay.job.job.empty())
      *exit_code = replay_command(a->replay);
    else if (a->seeds.empty() || parse_seeds(a->seeds, &a->sim))
      *exit_code = sim_command(a->sim);
    else
      *exit_code = report(invalid("'{}': give a number, or FIRST..LAST", a->seeds));
  });
}

void add_certs(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* certs = app->add_subcommand("certs", "make a job's own authority and certificates");
  certs->add_option("--out", a->certs.out, "folder to make")->required();
  certs->add_option("--job", a->certs.job, "name of the job");
  certs->add_option("--days", a->certs.days, "how long they are good")
      ->check(CLI::Range(1U, 3650U));
  certs->callback([=] { *exit_code = certs_command(a->certs); });
}

int print_text(const Result<std::string>& text) {
  if (!text.is_ok()) return report(text.status());
  std::fputs(text.value().c_str(), stdout);
  return 0;
}

// What is told about the commands themselves.
void add_manual(CLI::App* app, Arguments* a, int* exit_code) {
  CLI::App* completion = app->add_subcommand("completion", "print a completion script for a shell");
  completion->add_option("shell", a->shell, "bash, zsh or fish")->required();
  completion->callback(
      [=] { *exit_code = print_text(completion_script(a->shell, command_table(*app))); });

  CLI::App* man = app->add_subcommand("man", "print a man page (flux man run | man -l -)");
  man->add_option("command", a->man_of, "its name, of one word or several: data convert");
  man->callback([=] {
    *exit_code = print_text(man_page(join(a->man_of, " "), kVersion, command_table(*app)));
  });
}

}  // namespace

void add_running_commands(CLI::App* app, Arguments* arguments, int* exit_code) {
  add_watchers(app, arguments, exit_code);
  add_operators(app, arguments, exit_code);
  add_drill(app, arguments, exit_code);
}

void add_tool_commands(CLI::App* app, Arguments* arguments, int* exit_code) {
  add_certs(app, arguments, exit_code);
  add_data(app, arguments, exit_code);
  add_sim(app, arguments, exit_code);
  add_manual(app, arguments, exit_code);
}

}  // namespace flux
