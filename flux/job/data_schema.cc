// The section `data` of a job file.
#include "flux/data/features/feature.h"
#include "flux/job/format_auto.h"
#include "flux/job/schema.h"

namespace flux {
namespace {

Section make_slot_section() {
  using S = SlotOptions;
  Section s;
  s.doc = "A sparse feature: any number of keys in each line.";
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
  s.value<S>(
       "text", [](S & o) -> auto& { return o.text; }, "Keys are text, not numbers.")
      .tried_as({"string", "strings"});
  s.value<S>(
       "values", [](S & o) -> auto& { return o.values; },
       "A key may have a number behind it, KEY:NUMBER, by which its row is multiplied; 1 if it has "
       "none.")
      .tried_as({"value", "weighted", "weights"});
  return s;
}

// Where the buckets of bucketize end.
void add_bucket_fields(Section* s) {
  using F = FeatureOptions;
  s->value<F>(
       "boundaries", [](F & f) -> auto& { return f.boundaries; },
       "bucketize: where buckets end, rising; a number equal to one is in the bucket above it.")
      .not_empty()
      .tried_as({"bounds", "bins", "edges"})
      .defaults_to("none");
  s->value<F>(
       "quantiles", [](F & f) -> auto& { return f.quantiles; },
       "bucketize: the same, but they may repeat, as quantiles of counts do; repeats make no "
       "bucket.")
      .not_empty()
      .defaults_to("none");
  s->value<F>(
       "log_base", [](F & f) -> auto& { return f.log_base; },
       "bucketize: buckets end at 1 and at the powers of this.")
      .above(1, 1e6)
      .tried_as({"log", "scale", "base"})
      .defaults_to("none");
  s->value<F>(
       "buckets", [](F & f) -> auto& { return f.buckets; },
       "bucketize with log_base: how many buckets.")
      .between(2, 4096);
}

Section make_feature_section() {
  using F = FeatureOptions;
  Section s;
  s.doc = "A feature that is computed from others; docs/using/features.md.";
  s.value<F>(
       "name", [](F & f) -> auto& { return f.name; }, "Name, as tables and layers use it.")
      .a_name()
      .needed();
  s.value<F>(
       "op", [](F & f) -> auto& { return f.op; }, "How it is computed.")
      .one_of(feature_names())
      .needed()
      .tried_as({"kind", "type", "transform"});
  s.value<F>(
       "of", [](F & f) -> auto& { return f.of; },
       "What it is computed from: slots, dense features or features; criteo_tsv has I1..I13 and "
       "C1..C26.")
      .a_name()
      .not_empty()
      .needed()
      .tried_as({"from", "inputs", "input", "slots"});
  s.value<F>(
       "keys", [](F & f) -> auto& { return f.keys; },
       "hash, bucketize, cross: slots and features with the same word here share their keys.")
      .a_name()
      .defaults_to("the feature's name");
  s.value<F>(
       "modulus", [](F & f) -> auto& { return f.modulus; },
       "hash: at most so many different keys; 0: any number.")
      .tried_as({"mod", "size", "hash_size"});
  add_bucket_fields(&s);
  s.value<F>(
       "limit", [](F & f) -> auto& { return f.limit; },
       "cross: at most so many combinations in one example.")
      .between(1, 1'000'000);
  s.value<F>(
      "min", [](F & f) -> auto& { return f.min; }, "clip: smallest number.");
  s.value<F>(
      "max", [](F & f) -> auto& { return f.max; }, "clip: largest number.");
  s.value<F>(
      "mean", [](F & f) -> auto& { return f.mean; }, "normalise: what is subtracted.");
  s.value<F>(
       "deviation", [](F & f) -> auto& { return f.deviation; }, "normalise: what is divided by.")
      .above(0, 1e30)
      .tried_as({"std", "stddev", "scale"});
  return s;
}

void add_sentence_fields(Section* s) {
  using D = JobDraft;
  s->value<D>(
       "vocabulary", [](D & d) -> auto& { return d.job.data.vocabulary; },
       "sentences: file of words and their counts, made by `flux data vocab`. A relative path "
       "starts at the current folder.")
      .tried_as({"vocab", "words", "dictionary"})
      .defaults_to("none: needed by sentences");
  s->value<D>(
       "negatives", [](D & d) -> auto& { return d.job.data.negatives; },
       "sentences: words drawn for each line as negatives, in proportion to count^0.75.")
      .between(0, 1000)
      .tried_as({"negative", "negative_samples"});
  s->value<D>(
       "subsample", [](D & d) -> auto& { return d.job.data.subsample; },
       "sentences: words that make up more than about this share of all are kept only now and "
       "then; 0: always.")
      .between(0, 1)
      .tried_as({"sample", "threshold"});
}

Section make_csv_section() {
  using C = CsvOptions;
  Section s;
  s.doc = "How the lines of csv files are cut; docs/using/formats.md.";
  s.value<C>(
       "header", [](C & o) -> auto& { return o.header; },
       "Whether the first line of each file names the columns; if not, data.columns does.")
      .tried_as({"head", "names"});
  s.value<C>(
       "separator", [](C & o) -> auto& { return o.separator; },
       "The character between cells, or `tab`.")
      .tried_as({"sep", "delimiter", "delim"});
  s.value<C>(
       "quote", [](C & o) -> auto& { return o.quote; },
       "The character around cells that hold a separator; twice within one it stands for itself. "
       "Empty: none.")
      .or_empty_text();
  s.value<C>(
       "list", [](C & o) -> auto& { return o.list; },
       "The character between the keys in a cell of a slot. Empty: a cell is one key.")
      .or_empty_text()
      .tried_as({"list_separator", "multi"});
  s.value<C>(
       "missing", [](C & o) -> auto& { return o.missing; },
       "Cells that say nothing: no key, a dense feature of 0, a weight of 1.")
      .or_empty_text()
      .tried_as({"na", "na_values", "null"});
  s.value<C>(
       "ignore", [](C & o) -> auto& { return o.ignore; },
       "Columns of the header that are not read; `*`: all that the job does not declare.")
      .tried_as({"skip", "drop"})
      .defaults_to("none: an undeclared column is an error");
  s.value<C>(
      "weight", [](C & o) -> auto& { return o.weight; },
      "Column of the header with the weight of the example.");
  s.value<C>(
      "id", [](C & o) -> auto& { return o.id; },
      "Column of the header with a name of the example, which is not used.");
  s.value<C>(
      "sid", [](C & o) -> auto& { return o.sid; },
      "Column of the header with the search or session, for data.group: sid.");
  return s;
}

// What the lines hold.
void add_declared_fields(Section* s) {
  using D = JobDraft;
  static const Section slot = make_slot_section();
  s->list<D>(
       "slots", &slot, [](D & d) -> auto& { return d.job.data.slots; },
       "The sparse features of the lines.")
      .defaults_to("none");
  s->value<D>(
       "dense", [](D & d) -> auto& { return d.job.data.dense; },
       "Names of the dense features (numbers) of the lines.")
      .a_name()
      .tried_as({"floats", "dense_slots", "numbers"})
      .defaults_to("none");
  s->value<D>(
       "labels", [](D & d) -> auto& { return d.job.data.labels; },
       "Names of the labels, in the order of the line; layers use them as inputs.")
      .a_name()
      .not_empty()
      .tried_as({"label", "targets", "tasks"});
  s->value<D>(
      "weights", [](D & d) -> auto& { return d.job.data.weights; },
      "Whether examples have weights; layers use them as the input `weight`.");
  s->value<D>(
      "raw_keys", [](D & d) -> auto& { return d.job.data.raw_keys; },
      "Keys of the lines are those of the tables, as `flux data convert` writes them; "
      "else "
      "each slot has its own.");
  s->value<D>(
       "one_key", [](D & d) -> auto& { return d.job.data.one_key; },
       "Every slot of every example has exactly one key, which is checked; models read such data "
       "faster.")
      .tried_as({"single_key", "single_valued"});
  s->value<D>(
       "bad_records", [](D & d) -> auto& { return d.job.data.bad_records; },
       "How many records of a pass that their format refuses are set aside, named in "
       "OUTPUT/bad_records and counted as skipped; one more stops the job. Above 0 the data is "
       "parsed once before it is trained.")
      .between(0, 1'000'000)
      .tried_as({"max_bad_records", "skip_bad", "max_errors"});
  s->value<D>(
       "group", [](D & d) -> auto& { return d.job.data.group; },
       "Slot whose first key says whose example it is, for metrics by group; sid: the "
       "session of the line.")
      .defaults_to("none");
}

// How lines say it, where a format leaves that open.
void add_line_fields(Section* s) {
  using D = JobDraft;
  s->value<D>(
       "columns", [](D & d) -> auto& { return d.job.data.columns; },
       "multislot, csv without header: what stands where in a line: names of labels, slots and "
       "dense features, FIRST..LAST of dense features, or `dense` (all of them), `weight`, `id`, "
       "`sid`, `logkey`, `-` (not read).")
      .tried_as({"order", "fields"})
      .defaults_to("labels, weight, sid, slots, dense");
  s->value<D>(
      "minus_one_is_zero", [](D & d) -> auto& { return d.job.data.minus_one_is_zero; },
      "libsvm, libffm, vw, csv: a label of -1 is read as 0.");
  static const Section csv = make_csv_section();
  s->map<D>(
      "csv", &csv, [](D & d) -> auto& { return d.job.data.csv; }, csv.doc);
}

void add_file_fields(Section* s) {
  using D = JobDraft;
  s->value<D>(
       "train", [](D & d) -> auto& { return d.train; },
       "Files to train on, as one pass; globs (*, ?, [..]) are expanded. Relative paths "
       "start at the current folder. Give this or `passes`.")
      .not_empty()
      .tried_as({"files", "path", "paths", "training", "train_files"})
      .defaults_to("none");
  s->value<D>(
       "test", [](D & d) -> auto& { return d.job.test; },
       "Files to evaluate on after each pass; globs as in `train`.")
      .tried_as({"eval", "validation", "valid", "test_files"})
      .defaults_to("none: no evaluation");
}

void add_pipe_fields(Section* s) {
  using D = JobDraft;
  s->value<D>(
       "pipe", [](D & d) -> auto& { return d.job.data.pipe.command; },
       "Formats with a record in each line: a program and its arguments (no shell). Each file is "
       "its standard input; what it writes is parsed, and must be the same each time.")
      .tried_as({"pipe_command", "command", "preprocess"})
      .defaults_to("none: files are read as they are");
  s->value<D>(
       "pipe_timeout", [](D & d) -> auto& { return d.job.data.pipe.timeout_s; },
       "Seconds that the program of `pipe` may write nothing while it is waited for.")
      .between(0.01, 86400);
  s->value<D>(
       "pipe_max_gb", [](D & d) -> auto& { return d.job.data.pipe.max_gb; },
       "Most text, in GB (10^9 bytes), that the program of `pipe` may write for one file.")
      .between(0.001, 100000)
      .tried_as({"pipe_limit", "pipe_max_bytes"});
}

std::vector<std::string> format_choices() {
  std::vector<std::string> out = data_formats();
  out.emplace_back(kFormatAuto);
  return out;
}

Section make_data_section() {
  using D = JobDraft;
  Section s;
  s.doc = "What is read and how it is cut into batches.";
  s.value<D>(
       "format", [](D & d) -> auto& { return d.job.data.format; },
       "Format of the files; auto: what their lines look like.")
      .one_of(format_choices())
      .defaults_to("auto for a job that declares slots or dense features, else criteo_tsv");
  add_pipe_fields(&s);
  add_declared_fields(&s);
  add_line_fields(&s);
  add_sentence_fields(&s);
  static const Section feature = make_feature_section();
  s.list<D>(
       "features", &feature, [](D & d) -> auto& { return d.job.data.features; },
       "Features that are computed from those of the lines.")
      .tried_as({"derived", "transforms"})
      .defaults_to("none");
  add_file_fields(&s);
  s.value<D>(
       "batch", [](D & d) -> auto& { return d.job.data.batch_size; }, "Examples per batch.")
      .between(1, 1'000'000)
      .tried_as({"batch_size", "minibatch"});
  s.value<D>(
      "shuffle", [](D & d) -> auto& { return d.job.data.shuffle; },
      "Whether records are shuffled, within their block, anew in each epoch.");
  s.value<D>(
      "global_shuffle", [](D & d) -> auto& { return d.job.data.global_shuffle; },
      "Before a pass all of its records are put into one random order, as a block file in "
      "OUTPUT/shuffled, which workers read instead of the files; `shuffle` then shuffles within "
      "its blocks.");
  s.value<D>(
       "shuffle_memory_mb", [](D & d) -> auto& { return d.job.data.shuffle_memory_mb; },
       "Memory for the global shuffle, about.")
      .between(1, 1'000'000);
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

}  // namespace

const Section& data_section() {
  static const Section section = make_data_section();
  return section;
}

std::vector<std::string> model_sources(const DataOptions& data) {
  std::vector<std::string> sources = {"dense"};
  if (data.format != "sentences")
    sources.insert(sources.end(), data.labels.begin(), data.labels.end());
  if (data.weights) sources.emplace_back("weight");
  return sources;
}

}  // namespace flux
