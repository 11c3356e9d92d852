#include "flux/job/schema.h"

#include <algorithm>

#include "flux/base/check.h"

namespace flux {
namespace {

Section make_table_section() {
  using T = TableOptions;
  Section s;
  s.doc = "A sparse table: one row of `dim` floats per key, made when the key is first trained.";
  s.value<T>(
       "name", [](T & t) -> auto& { return t.name; }, "Name by which layers refer to it.")
      .a_name();
  s.value<T>(
       "dim", [](T & t) -> auto& { return t.dim; }, "Floats per row.")
      .between(1, 4096)
      .tried_as({"size", "width", "embedding_dim", "units"});
  s.value<T>(
       "init", [](T & t) -> auto& { return t.init; },
       "First values of a row: uniform in [-init_scale, init_scale), or zero.")
      .one_of({"uniform", "zero"});
  s.value<T>(
       "init_scale", [](T & t) -> auto& { return t.init_scale; },
       "Bound of the uniform first values.")
      .between(0, 100);
  s.value<T>(
       "slots", [](T & t) -> auto& { return t.slots; },
       "Slots whose keys have rows here. Tables name the same slots or different ones; a slot that "
       "no table has is not given to the model.")
      .a_name()
      .not_empty()
      .tried_as({"of", "features", "slot"})
      .defaults_to("all");
  s.map<T>(
      "optimizer", &optimizer_section(), [](T & t) -> auto& { return t.optimizer; },
      "How rows are updated.");
  return s;
}

Section make_pass_section() {
  using P = PassSpec;
  Section s;
  s.doc = "One hour, day or fixed set of files, trained in the order of the list.";
  s.value<P>(
       "name", [](P & p) -> auto& { return p.name; }, "Name of the pass.")
      .a_name()
      .defaults_to("pass-N, counted from 0");
  s.value<P>(
       "train", [](P & p) -> auto& { return p.train; },
       "Files to train on; globs (*, ?, [..]) are expanded. "
       "Relative paths start at the current folder.")
      .not_empty()
      .needed()
      .tried_as({"files", "data", "path", "paths"});
  return s;
}

Section make_model_section() {
  Section s;
  s.doc = "The model as a list of layers; at least one of them is a loss.";
  s.value<JobDraft>(
       "layers", [](JobDraft & d) -> auto& { return d.job.layers; },
       "Operators in the order of their use.")
      .needed();
  return s;
}

Section make_phase_section() {
  using P = PhaseSpec;
  Section s;
  s.doc = "A network with its own dense weights; at least one of its layers is a loss.";
  s.value<P>(
       "name", [](P & p) -> auto& { return p.name; }, "Name of the phase, in metrics and lines.")
      .a_name()
      .needed();
  s.map<P>(
       "dense_optimizer", &optimizer_section(), [](P & p) -> auto& { return p.dense_optimizer; },
       "How the weights of its dense layers are updated, if not as the job's.")
      .tried_as({"optimizer"});
  s.value<P>(
       "layers", [](P & p) -> auto& { return p.layers; }, "Operators in the order of their use.")
      .needed();
  return s;
}

Section make_metrics_section() {
  using D = JobDraft;
  Section s;
  s.doc = "Metrics of parts of the examples, while training and on test data.";
  s.value<D>(
       "slices", [](D & d) -> auto& { return d.job.data.slices; },
       "Slots (of format feasign): metrics are also told apart by the first key of each.")
      .a_name()
      .tried_as({"by", "slots", "slice", "group_by"})
      .defaults_to("none");
  s.value<D>(
       "values", [](D & d) -> auto& { return d.job.slice_values; },
       "Keys of a slot that are told apart, the smallest numbers; all others are `other`.")
      .between(1, 64)
      .tried_as({"max_values", "top", "limit"});
  return s;
}

Section make_checkpoint_section() {
  using D = JobDraft;
  Section s;
  s.doc = "When checkpoints are written and how many are kept.";
  s.value<D>(
       "every_s", [](D & d) -> auto& { return d.job.checkpoint_every_s; },
       "Seconds between checkpoints; 0: only at the end of a pass. In a cluster, where shards "
       "whose "
       "replicas are all lost go back to the last one, the default keeps that younger than 10 s.")
      .between(0, 604'800)
      .defaults_to("60, in a cluster 8")
      .tried_as({"every", "interval", "interval_s", "seconds"});
  s.value<D>(
       "keep", [](D & d) -> auto& { return d.job.checkpoint_keep; },
       "Checkpoints kept; older ones are removed.")
      .between(1, 1000);
  s.value<D>(
       "full_every", [](D & d) -> auto& { return d.job.checkpoint_full_every; },
       "At least one of so many checkpoints has a shard whole; the others may have only the rows "
       "that changed. 1: always whole.")
      .between(1, 64)
      .tried_as({"whole_every", "increments", "incremental"});
  return s;
}

Section make_workers_change_section() {
  using L = LrPolicyOptions;
  Section s;
  s.doc = "What becomes of the learning rate when workers come or go.";
  s.value<L>(
       "lr", [](L & l) -> auto& { return l.lr; },
       "All learning rates are multiplied by (workers / reference) to the power of 0 (none), 1 "
       "(linear) or 0.5 (sqrt).")
      .one_of({"none", "linear", "sqrt"})
      .tried_as({"policy", "lr_policy", "lr_scale", "learning_rate"});
  s.value<L>(
       "reference", [](L & l) -> auto& { return l.reference; },
       "Workers that the learning rates of this file are meant for; 0: as many as the job is "
       "started with.")
      .between(0, 100'000)
      .tried_as({"workers", "base_workers"});
  s.value<L>(
       "warmup_batches", [](L & l) -> auto& { return l.warmup_batches; },
       "Batches of all workers over which the factor goes in a straight line from the one before "
       "to the new one; 0: at once.")
      .between(0, 1'000'000'000)
      .tried_as({"warmup", "warm_up", "warmup_steps"});
  return s;
}

void add_run_fields(Section* s) {
  using D = JobDraft;
  s->value<D>(
       "name", [](D & d) -> auto& { return d.job.name; }, "Name of the job.")
      .a_name();
  s->value<D>(
       "output", [](D & d) -> auto& { return d.job.output; },
       "Folder for checkpoints, learning curve and summary. A relative path starts at the "
       "current folder.")
      .tried_as({"output_dir", "out", "model_dir", "dir"})
      .defaults_to("out/ and the job's name");
  s->value<D>(
      "seed", [](D & d) -> auto& { return d.job.seed; }, "Seed of first values and of shuffling.");
  s->value<D>(
       "threads", [](D & d) -> auto& { return d.job.threads; },
       "Threads that compute each batch together; 0: one per core. The model does not depend on "
       "how "
       "many they are.")
      .between(0, 4096);
  s->value<D>(
       "precision", [](D & d) -> auto& { return d.job.precision; },
       "Arithmetic of the dense layers; auto takes bf16 where the CPU has it.")
      .one_of({"auto", "fp32", "bf16"});
  s->value<D>(
      "deterministic", [](D & d) -> auto& { return d.job.deterministic; },
      "Same bits every time: no pull-ahead, whatever `pull_ahead` says, and a block is leased when "
      "the one before is done.");
}

void add_schedule_fields(Section* s) {
  using D = JobDraft;
  static const Section pass = make_pass_section();
  s->list<D>(
       "passes", &pass, [](D & d) -> auto& { return d.job.passes; },
       "Instead of data.train: passes trained one after the other.")
      .defaults_to("one pass over data.train");
  s->value<D>(
       "epochs", [](D & d) -> auto& { return d.job.epochs; }, "Times each pass is trained.")
      .between(1, 65535);
  static const Section phase = make_phase_section();
  s->list<D>(
       "phases", &phase, [](D & d) -> auto& { return d.job.phases; },
       "Instead of model: several networks over the same tables. The data of each pass is trained "
       "by all epochs of the first, then by those of the next (docs/using/phases.md).")
      .tried_as({"networks", "models", "stages"})
      .defaults_to("one: model");
  s->value<D>(
       "shards", [](D & d) -> auto& { return d.job.shards; },
       "Virtual shards; all tables are cut alike, and groups of slots share them out. 0: chosen by "
       "flux.")
      .between(0, 65'536);
}

// When rows are pulled and gradients pushed, and how both travel.
void add_traffic_fields(Section* s) {
  using D = JobDraft;
  s->value<D>(
       "mode", [](D & d) -> auto& { return d.job.mode; },
       "When gradients are merged. async: each worker pushes its batches and goes on; half_async: "
       "the same, as the threads of a worker share each batch; sync: all workers merge a batch "
       "each "
       "in every step.")
      .one_of({"async", "half_async", "sync"})
      .tried_as({"training_mode", "strategy"});
  s->value<D>(
       "pull_ahead", [](D & d) -> auto& { return d.job.pull_ahead; },
       "Staleness bound of pulls: batches of a worker whose rows are pulled before they are "
       "needed. Faster in a cluster, but rows are up to that many batches old. In one process "
       "nothing is pulled ahead.")
      .between(0, 64)
      .tried_as({"prefetch", "staleness"});
  s->value<D>(
       "push_in_flight", [](D & d) -> auto& { return d.job.push_in_flight; },
       "Staleness bound of pushes: pushes of a worker that servers have not acknowledged yet; "
       "at this many it waits before it trains on.")
      .between(1, 64)
      .tried_as({"pushes_max", "push_ahead", "in_flight"});
  s->value<D>(
       "replicas", [](D & d) -> auto& { return d.job.replicas; },
       "Copies of every shard in a cluster, on different servers: with 2 a lost server costs "
       "nothing, with 1 its shards go back to the last checkpoint and what they lack is trained "
       "again. 0: 2 if there are at least two servers.")
      .between(0, 2)
      .tried_as({"replication", "copies", "backups", "replica"});
  s->value<D>(
       "rebalance", [](D & d) -> auto& { return d.job.rebalance; },
       "Whether a cluster moves shards by itself away from a server that has had clearly more to "
       "do "
       "than the mean for a while. false: only where `flux rebalance` and `flux move` say.")
      .tried_as({"balance", "auto_rebalance", "rebalancing"});
  s->value<D>(
       "hung_after", [](D & d) -> auto& { return d.job.hung_after; },
       "Seconds that a process which was taken for dead has to come back (it may be stopped or "
       "swapped out) before `flux run` kills it and starts another. More for one that a debugger "
       "holds; what it sends when it comes back is refused either way.")
      .between(1, 86400)
      .tried_as({"hung_timeout", "hung_after_s", "role_timeout"});
  s->value<D>(
       "wire", [](D & d) -> auto& { return d.job.wire; },
       "Numbers on the wire between workers and servers: rows, gradients and dense weights. fp16 "
       "and bf16 halve the traffic; tables and optimizers stay fp32.")
      .one_of({"fp32", "fp16", "bf16"})
      .tried_as({"wire_precision", "wire_type", "compression"});
}

Section make_job_section() {
  using D = JobDraft;
  static const Section table = make_table_section();
  static const Section model = make_model_section();
  static const Section checkpoint = make_checkpoint_section();
  static const Section workers_change = make_workers_change_section();
  const auto whole = [](D & d) -> auto& {
    return d;
  };
  Section s;
  s.doc = "A training job.";
  add_run_fields(&s);
  s.map<D>("data", &data_section(), whole, "What is read.");
  add_schedule_fields(&s);
  s.list<D>(
       "tables", &table, [](D & d) -> auto& { return d.job.tables; }, "Sparse tables.")
      .defaults_to("none");
  s.map<D>("model", &model, whole, "What is trained, unless there are phases.");
  s.map<D>(
       "dense_optimizer", &optimizer_section(),
       [](D & d) -> auto& { return d.job.dense_optimizer; },
       "How the weights of dense layers are updated.")
      .tried_as({"optimizer"});
  add_traffic_fields(&s);
  s.map<D>("checkpoint", &checkpoint, whole, "When state is saved.").tried_as({"checkpoints"});
  s.value<D>(
       "skip_limit", [](D & d) -> auto& { return d.job.skip_limit; },
       "Share of the batches of a pass that may be skipped, because they kill workers or their "
       "gradients are not finite; at least one batch, unless it is 0. At one more the job stops.")
      .between(0, 1)
      .tried_as({"max_skipped", "skip_max", "bad_batches"});
  s.map<D>(
       "lr_schedule", &lr_schedule_section(), [](D & d) -> auto& { return d.job.lr_schedule; },
       "How the learning rates change in the course of the run.")
      .tried_as({"schedule", "lr_decay", "learning_rate_schedule"});
  s.map<D>(
       "on_workers_change", &workers_change, [](D & d) -> auto& { return d.job.on_workers_change; },
       "What becomes of the learning rate when workers come or go.")
      .tried_as({"elastic", "scaling", "workers_change"});
  static const Section metrics = make_metrics_section();
  s.map<D>("metrics", &metrics, whole, "What is told about predictions, besides the whole.")
      .tried_as({"metric", "evaluation"});
  s.map<D>(
       "stop", &stop_section(), [](D & d) -> auto& { return d.job.stop; },
       "When training ends before its data does (docs/using/stop.md).")
      .tried_as({"early_stop", "early_stopping", "limits", "until"});
  return s;
}

}  // namespace

const Section& job_section() {
  static const Section section = make_job_section();
  return section;
}

}  // namespace flux
