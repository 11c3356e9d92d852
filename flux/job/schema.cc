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

Section make_slot_section() {
  using S = SlotOptions;
  Section s;
  s.doc = "A sparse feature: any number of keys in each line, written NAME:KEY.";
  s.value<S>(
       "name", [](S & o) -> auto& { return o.name; }, "Name, as the lines write it.")
      .a_name()
      .needed();
  s.value<S>(
       "keys", [](S & o) -> auto& { return o.keys; },
       "Slots with the same word here share their keys, and so their rows.")
      .a_name()
      .tried_as({"shared", "share", "space"})
      .defaults_to("the slot's name");
  return s;
}

Section make_data_section() {
  using D = JobDraft;
  Section s;
  s.doc = "What is read and how it is cut into batches.";
  s.value<D>(
       "format", [](D & d) -> auto& { return d.job.data.format; }, "Format of the files.")
      .one_of(data_formats());
  static const Section slot = make_slot_section();
  s.list<D>(
       "slots", &slot, [](D & d) -> auto& { return d.job.data.slots; },
       "feasign: the sparse features of the lines.")
      .defaults_to("none");
  s.value<D>(
       "dense", [](D & d) -> auto& { return d.job.data.dense; },
       "feasign: names of the dense features (numbers) of the lines.")
      .a_name()
      .tried_as({"floats", "dense_slots", "numbers"})
      .defaults_to("none");
  s.value<D>(
       "labels", [](D & d) -> auto& { return d.job.data.labels; },
       "feasign: names of the labels, in the order of the line; layers use them as inputs.")
      .a_name()
      .not_empty()
      .tried_as({"label", "targets", "tasks"});
  s.value<D>(
      "weights", [](D & d) -> auto& { return d.job.data.weights; },
      "feasign: whether examples have weights (w=); layers use them as the input `weight`.");
  s.value<D>(
      "raw_keys", [](D & d) -> auto& { return d.job.data.raw_keys; },
      "feasign: keys of the lines are those of the tables, as `flux data convert` writes them; else "
      "each slot has its own.");
  s.value<D>(
       "group", [](D & d) -> auto& { return d.job.data.group; },
       "feasign: slot whose first key says whose example it is, for metrics by group; sid: the "
       "session of the line.")
      .defaults_to("none");
  s.value<D>(
       "train", [](D & d) -> auto& { return d.train; },
       "Files to train on, as one pass; globs (*, ?, [..]) are expanded. Relative paths "
       "start at the current folder. Give this or `passes`.")
      .not_empty()
      .tried_as({"files", "path", "paths", "training", "train_files"})
      .defaults_to("none");
  s.value<D>(
       "test", [](D & d) -> auto& { return d.job.test; },
       "Files to evaluate on after each pass; globs as in `train`.")
      .tried_as({"eval", "validation", "valid", "test_files"})
      .defaults_to("none: no evaluation");
  s.value<D>(
       "batch", [](D & d) -> auto& { return d.job.data.batch_size; }, "Examples per batch.")
      .between(1, 1'000'000)
      .tried_as({"batch_size", "minibatch"});
  s.value<D>(
      "shuffle", [](D & d) -> auto& { return d.job.data.shuffle; },
      "Whether records are shuffled, within their block, anew in each epoch.");
  s.value<D>(
       "dense_transform", [](D & d) -> auto& { return d.job.data.dense_transform; },
       "Applied to each dense feature; log1p is log(1 + max(x, 0)).")
      .one_of({"log1p", "none"});
  s.value<D>(
      "key_per_example", [](D & d) -> auto& { return d.job.data.key_per_example; },
      "Replaces the sparse features of each example by one key, its record number: the "
      "counting model.");
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

Section make_checkpoint_section() {
  using D = JobDraft;
  Section s;
  s.doc = "When checkpoints are written and how many are kept.";
  s.value<D>(
       "every_s", [](D & d) -> auto& { return d.job.checkpoint_every_s; },
       "Seconds between checkpoints; 0: only at the end of a pass.")
      .between(0, 604'800)
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
       "Threads that train; 0: one per core.")
      .between(0, 4096);
  s->value<D>(
       "precision", [](D & d) -> auto& { return d.job.precision; },
       "Arithmetic of the dense layers; auto takes bf16 where the CPU has it.")
      .one_of({"auto", "fp32", "bf16"});
  s->value<D>(
      "deterministic", [](D & d) -> auto& { return d.job.deterministic; },
      "Same bits every time: one thread and no pull-ahead, whatever `threads` and "
      "`pull_ahead` say.");
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
  s->value<D>(
       "phases", [](D & d) -> auto& { return d.job.phases; },
       "Phases run over the data of each pass, in this order.")
      .one_of({"train"})
      .not_empty();
  s->value<D>(
       "shards", [](D & d) -> auto& { return d.job.shards; },
       "Virtual shards per table; 0: chosen by flux.")
      .between(0, 65'536);
}

// When rows are pulled and gradients pushed, and how both travel.
void add_traffic_fields(Section* s) {
  using D = JobDraft;
  s->value<D>(
       "mode", [](D & d) -> auto& { return d.job.mode; },
       "When gradients are merged. async: each thread pushes its own batch; half_async: the "
       "threads of a worker merge a batch each into one push; sync: all threads of all workers "
       "merge every step.")
      .one_of({"async", "half_async", "sync"})
      .tried_as({"training_mode", "strategy"});
  s->value<D>(
       "pull_ahead", [](D & d) -> auto& { return d.job.pull_ahead; },
       "Staleness bound of pulls: batches of a thread whose rows are pulled before they are "
       "needed. Faster, but rows are up to that many batches old.")
      .between(0, 64)
      .tried_as({"prefetch", "staleness"});
  s->value<D>(
       "push_in_flight", [](D & d) -> auto& { return d.job.push_in_flight; },
       "Staleness bound of pushes: pushes of a thread that servers have not acknowledged yet; "
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
       "wire", [](D & d) -> auto& { return d.job.wire; },
       "Numbers on the wire between workers and servers: rows, gradients and dense weights. fp16 "
       "and bf16 halve the traffic; tables and optimizers stay fp32.")
      .one_of({"fp32", "fp16", "bf16"})
      .tried_as({"wire_precision", "wire_type", "compression"});
}

Section make_job_section() {
  using D = JobDraft;
  static const Section data = make_data_section();
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
  s.map<D>("data", &data, whole, "What is read.");
  add_schedule_fields(&s);
  s.list<D>(
       "tables", &table, [](D & d) -> auto& { return d.job.tables; }, "Sparse tables.")
      .defaults_to("none");
  s.map<D>("model", &model, whole, "What is trained.").needed();
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
  return s;
}

}  // namespace

const Section& job_section() {
  static const Section section = make_job_section();
  return section;
}

std::vector<std::string> model_sources(const DataOptions& data) {
  std::vector<std::string> sources = {"dense"};
  sources.insert(sources.end(), data.labels.begin(), data.labels.end());
  if (data.weights) sources.emplace_back("weight");
  return sources;
}

}  // namespace flux
