#include "flux/main/run_job.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>

#include "flux/base/hash.h"
#include "flux/base/random.h"
#include "flux/base/text.h"
#include "flux/cluster/schedule.h"
#include "flux/coordinator/checkpointing.h"
#include "flux/main/embedded.h"
#include "flux/main/evaluate.h"
#include "flux/main/output_lock.h"
#include "flux/main/reporter.h"
#include "flux/storage/atomic_file.h"
#include "flux/worker/worker.h"

namespace flux {
namespace {

double seconds_since(TimeNs start) {
  return static_cast<double>(steady_now_ns() - start) * 1e-9;
}

std::vector<uint32_t> lease_order(const Geometry& geometry, const BlockId& section) {
  std::vector<uint32_t> order(geometry.blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  if (geometry.shuffle_seed == 0) return order;
  Random random(hash_pair(hash_pair(geometry.shuffle_seed, section.pass),
                          (static_cast<uint64_t>(section.phase) << 16) | section.epoch));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

class JobRun {
 public:
  JobRun(const Job& job, const RunOptions& options)
      : options_(options), start_(steady_now_ns()), job_(job) {}

  Result<Summary> run() {
    FLUX_RETURN_IF_ERROR(open());
    FLUX_RETURN_IF_ERROR(build_worker());
    const auto first = static_cast<uint32_t>(closed_.size());
    // A pass that the checkpoint has open is opened even if we were asked to stop meanwhile: the
    // accounting at the end needs its cut.
    const bool reopen = e_->restored && e_->restored->geometry != 0;
    for (uint32_t p = first; p < e_->job.passes.size(); ++p) {
      if (stopped() && !(reopen && p == first)) break;
      FLUX_RETURN_IF_ERROR(run_pass(p));
    }
    return finish();
  }

 private:
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  std::string in_output(const char* name) const { return join_path(job_.output, name); }

  Status open() {
    FLUX_ASSIGN_OR_RETURN(lock_, OutputLock::take(job_.output));
    FLUX_RETURN_IF_ERROR(remove_leftovers());
    FLUX_ASSIGN_OR_RETURN(
        e_, open_embedded(job_, options_.fresh ? LoadMode::kIgnore : LoadMode::kIfThere));
    // Before anything is removed or trained for hours: a mistyped file name.
    FLUX_RETURN_IF_ERROR(expand_globs(job_.test).status());
    const size_t closed = e_->restored ? e_->restored->closed.size() : 0;
    for (size_t p = closed; p < job_.passes.size(); ++p)
      FLUX_RETURN_IF_ERROR(expand_globs(job_.passes[p].train).status());
    reporter_ = std::make_unique<Reporter>(options_.terminal, in_output("curve.tsv"));
    reporter_->say(fmt::format("job {}: {} tables, {} dense parameters, {} threads, {}", job_.name,
                               e_->job.tables.size(), with_commas(e_->graph->parameter_count()),
                               e_->threads, precision_name(e_->precision)));
    if (!e_->restored) return Status::ok();
    closed_ = e_->restored->closed;
    resumed_from_ = e_->store().path_of(e_->restored->number);
    reporter_->say(fmt::format("resumed from {} of {}: {} passes closed, {} rows ({:.1f} s)",
                               resumed_from_, e_->restored->created, closed_.size(),
                               with_commas(e_->rows()), e_->restore_s));
    return Status::ok();
  }

  // Of a run that was killed. Only names that we write: the folder may hold a person's files.
  Status remove_leftovers() {
    for (const char* name : {"curve.tsv", "curve.svg", "summary.json"})
      FLUX_RETURN_IF_ERROR(remove_all(in_output(name) + std::string(kTemporarySuffix)));
    const std::string cuts = in_output("geometry");
    for (const std::string& name : list_folder(cuts))
      if (name.ends_with(kTemporarySuffix)) FLUX_RETURN_IF_ERROR(remove_all(join_path(cuts, name)));
    return CheckpointStore(in_output("checkpoints")).remove_leftovers();
  }

  // --fresh, once the new run's data is known to be good.
  Status forget() {
    // One by one, manifest first: killed on the way, what is left is whole.
    FLUX_RETURN_IF_ERROR(CheckpointStore(in_output("checkpoints")).prune(0));
    for (const std::string& name : list_folder(in_output("geometry")))
      FLUX_RETURN_IF_ERROR(remove_all(join_path(in_output("geometry"), name)));
    for (const char* name : {"curve.tsv", "curve.svg", "summary.json"})
      FLUX_RETURN_IF_ERROR(remove_all(in_output(name)));
    return Status::ok();
  }

  Status build_worker() {
    WorkerOptions options;
    options.threads = e_->threads;
    options.trainer.graph = e_->graph;
    options.trainer.net = {e_->precision, e_->job.data.batch_size};
    options.trainer.sparse_shards = e_->server->sparse_shards();
    options.trainer.pull_ahead = e_->job.deterministic ? 0 : e_->job.pull_ahead;
    options.trainer.client.incarnation = e_->incarnation;
    FLUX_ASSIGN_OR_RETURN(worker_,
                          Worker::create(options, {e_->server.get()}, e_->coordinator.get()));
    return Status::ok();
  }

  // The frozen cut of a pass: from the checkpoint if the pass is open there, else made now and
  // written down before the first lease.
  Status open_data(uint32_t pass) {
    const PassSpec& spec = e_->job.passes[pass];
    FLUX_ASSIGN_OR_RETURN(const auto files, expand_globs(spec.train));
    const bool open_before =
        e_->restored && e_->restored->geometry != 0 && pass == e_->restored->closed.size();
    Geometry geometry;
    if (open_before) {
      FLUX_ASSIGN_OR_RETURN(geometry, frozen_geometry(files));
    } else {
      reporter_->say(fmt::format("pass {}: reading {} file{}", spec.name, files.size(),
                                 files.size() == 1 ? "" : "s"));
      FLUX_ASSIGN_OR_RETURN(geometry,
                            Dataset::scan(files, e_->job.data, e_->threads, options_.stop));
      if (options_.fresh && pass == 0) FLUX_RETURN_IF_ERROR(forget());
      FLUX_RETURN_IF_ERROR(make_folders(in_output("geometry")));
      FLUX_RETURN_IF_ERROR(
          write_file_atomic(join_path(in_output("geometry"), fmt::format("pass-{:05}.json", pass)),
                            geometry.to_json()));
    }
    FLUX_ASSIGN_OR_RETURN(dataset_, Dataset::open(geometry, e_->job.data));
    FLUX_RETURN_IF_ERROR(check_epochs(pass));
    return e_->server->open_pass(pass, geometry.hash());
  }

  // Epochs may be added to an open pass, but what was trained cannot be taken back.
  Status check_epochs(uint32_t pass) const {
    const auto blocks = static_cast<uint32_t>(dataset_->geometry().blocks.size());
    for (uint16_t phase = 0; phase < schedule().phases; ++phase)
      for (const uint32_t mask :
           e_->server->marked_by_any({pass, phase, schedule().epochs, 0}, blocks))
        if (mask != 0)
          return invalid(
              "pass {} was trained for more than {} epochs already\n"
              "set epochs back until the pass is closed, or start over with --fresh",
              e_->job.passes[pass].name, schedule().epochs);
    return Status::ok();
  }

  Result<Geometry> frozen_geometry(const std::vector<std::string>& files) {
    const Manifest& manifest = *e_->restored;
    for (const FileInfo& file : manifest.files) {
      if (file.name != "geometry.json") continue;
      FLUX_ASSIGN_OR_RETURN(const std::string text, e_->store().read(manifest, file));
      FLUX_ASSIGN_OR_RETURN(Geometry frozen, Geometry::from_json(text));
      Geometry wanted = frozen;  // the parts of a cut that the job file decides
      wanted.format = e_->job.data.format;
      wanted.batch_size = e_->job.data.batch_size;
      wanted.shuffle_seed = shuffle_seed_of(e_->job.data);
      const auto differences = geometry_differences(frozen, wanted);
      if (frozen.hash() != manifest.geometry || !differences.empty())
        return invalid(
            "pass {} was begun with another cut of the data:\n  {}\n"
            "set it back until the pass is closed, or start over with --fresh",
            manifest.open_pass, join(differences, "\n  "));
      size_t added = 0;
      for (const std::string& path : files)
        added += std::none_of(frozen.files.begin(), frozen.files.end(),
                              [&](const DataFile& f) { return f.path == path; });
      if (added > 0)
        reporter_->say(fmt::format("note: {} new file(s) match, but pass {} was cut without them",
                                   added, manifest.open_pass));
      return frozen;
    }
    return error(Code::kCorrupt, "{} has no geometry.json", e_->store().path_of(manifest.number));
  }

  Schedule schedule() const {
    return {static_cast<uint32_t>(e_->job.passes.size()),
            static_cast<uint16_t>(e_->job.phases.size()), static_cast<uint16_t>(e_->job.epochs)};
  }

  // How many sections of the pass every shard has completely, after a restore.
  uint32_t complete_sections(uint32_t pass) const {
    const Geometry& geometry = dataset_->geometry();
    const auto blocks = static_cast<uint32_t>(geometry.blocks.size());
    for (uint32_t i = 0; i < schedule().sections(); ++i) {
      const auto marked = e_->server->marked_by_all(schedule().section(pass, i), blocks);
      for (uint32_t b = 0; b < blocks; ++b) {
        const uint32_t all = batch_mask(geometry.batches_in(b));
        if ((marked[b] & all) != all) return i;
      }
    }
    return schedule().sections();
  }

  // Examples of this pass that every shard has, or (`by_any`) at least one, from the ledgers.
  uint64_t examples_applied(uint32_t pass, bool by_any = false) const {
    const Geometry& geometry = dataset_->geometry();
    const auto blocks = static_cast<uint32_t>(geometry.blocks.size());
    // Sections run one after another: those before the current one are complete. Shards of a
    // checkpoint, each saved at its own moment, may have marks of a few more.
    const uint32_t done = sections_done_;
    uint64_t sum = geometry.records() * done;
    uint64_t before = ~0ULL;
    for (uint32_t i = done; i < schedule().sections() && sum != before; ++i) {
      before = sum;
      const BlockId section = schedule().section(pass, i);
      const auto marked = by_any ? e_->server->marked_by_any(section, blocks)
                                 : e_->server->marked_by_all(section, blocks);
      for (uint32_t b = 0; b < blocks; ++b)
        for (uint32_t j = 0; j < geometry.batches_in(b); ++j)
          if ((marked[b] >> j) & 1) sum += geometry.batch_records(b, j);
    }
    return sum;
  }

  uint64_t closed_examples() const {
    uint64_t sum = 0;
    for (const ClosedPass& pass : closed_) sum += pass.records * pass.repeats;
    return sum;
  }

  Status run_pass(uint32_t pass) {
    const Status opened = open_data(pass);
    if (opened.code() == Code::kCancelled) return Status::ok();  // the end says "stopped"
    FLUX_RETURN_IF_ERROR(opened);
    pass_ = pass;
    const Geometry& geometry = dataset_->geometry();
    const uint64_t in_pass = geometry.records() * schedule().sections();
    sections_done_ = complete_sections(pass);
    const uint64_t before = examples_applied(pass);
    reporter_->say(fmt::format(
        "pass {}: {} examples x {}, {} blocks, {} batches of {}{}", e_->job.passes[pass].name,
        with_commas(geometry.records()), schedule().sections(), geometry.blocks.size(),
        with_commas(geometry.batches()), geometry.batch_size,
        before > 0 ? fmt::format("; {} already applied", with_commas(before)) : ""));
    std::vector<uint8_t> batches;
    for (uint32_t b = 0; b < geometry.blocks.size(); ++b)
      batches.push_back(static_cast<uint8_t>(geometry.batches_in(b)));

    begin_reporting(closed_examples() + before, closed_examples() + in_pass);
    const TimeNs train_start = steady_now_ns();
    Status status;
    for (uint32_t i = sections_done_; i < schedule().sections() && status.is_ok() && !stopped();
         ++i) {
      const BlockId section = schedule().section(pass, i);
      const auto marked = e_->server->marked_by_all(section, static_cast<uint32_t>(batches.size()));
      e_->coordinator->begin_section(section, batches, lease_order(geometry, section), marked,
                                     true);
      status = worker_->run_section(*dataset_, options_.stop);
      if (status.is_ok() && e_->coordinator->section_applied()) sections_done_ = i + 1;
    }
    train_s_ += seconds_since(train_start);
    reporter_->stop(worker_->progress());
    FLUX_RETURN_IF_ERROR(status);
    if (stopped()) return checkpoint(false);
    const Status closed = checkpoint(true);
    if (!closed.is_ok())
      return Status(closed.code(),
                    fmt::format("{}\nthe end of pass {} was not saved; mend this and run again: "
                                "training goes on from {}",
                                closed.message(), e_->job.passes[pass].name,
                                last_checkpoint_.empty() ? "its start" : last_checkpoint_));
    return evaluate_pass();
  }

  void begin_reporting(uint64_t before, uint64_t total) {
    const bool inline_checkpoints = e_->job.deterministic;
    next_checkpoint_ = steady_now_ns() + every_ns();
    const auto maybe_checkpoint = [this] {
      if (every_ns() == 0 || steady_now_ns() < next_checkpoint_) return;
      const Status status = checkpoint(false);
      if (!status.is_ok())
        reporter_->say("warning: no checkpoint, training goes on: " + status.message());
      next_checkpoint_ = steady_now_ns() + every_ns();
    };
    if (inline_checkpoints) worker_->set_between_batches(maybe_checkpoint);
    reporter_->start(worker_.get(), before, total,
                     inline_checkpoints ? std::function<void()>() : maybe_checkpoint);
  }
  TimeNs every_ns() const {
    return static_cast<TimeNs>(e_->job.checkpoint_every_s * static_cast<double>(kSecond));
  }

  Status checkpoint(bool closing) {
    Manifest base;
    base.job = job_.name;
    base.incarnation = e_->incarnation;
    base.epoch = e_->epoch;
    base.model = e_->model;
    base.closed = closed_;
    const Geometry& geometry = dataset_->geometry();
    PassToClose close{pass_, schedule(), &geometry};
    if (closing) {
      base.closed.push_back({e_->job.passes[pass_].name, geometry.records(), schedule().sections(),
                             geometry.hash(), 0});
    } else {
      base.geometry = geometry.hash();
      base.open_pass = e_->job.passes[pass_].name;
      base.examples = examples_applied(pass_);
    }
    FLUX_ASSIGN_OR_RETURN(
        const Manifest written,
        write_checkpoint(e_->store(), e_->checkpoint_folder, e_->server.get(), std::move(base),
                         closing ? nullptr : &geometry, closing ? &close : nullptr));
    last_checkpoint_ = e_->store().path_of(written.number);
    if (closing) {
      closed_ = written.closed;
      e_->server->close_below(pass_ + 1);
    }
    // The checkpoint stands, whatever becomes of these.
    for (const Status& status :
         {reporter_->save_curve(), e_->store().prune(e_->job.checkpoint_keep)})
      if (!status.is_ok()) reporter_->say("warning: " + status.message());
    return Status::ok();
  }

  Status evaluate_pass() {
    if (e_->job.test.empty() || stopped()) return Status::ok();
    auto metrics = evaluate(*e_, e_->job.test, {}, options_.stop);
    if (metrics.status().code() == Code::kCancelled) return Status::ok();
    evaluation_ = metrics.status();
    if (!metrics.is_ok())
      return Status::ok();  // told at the end: the training is saved and counted
    metrics_ = std::move(metrics).value();
    reporter_->say(fmt::format("test: {} examples, AUC {:.5f}, log loss {:.5f}",
                               with_commas(metrics_->examples()), metrics_->auc(),
                               metrics_->log_loss()));
    return Status::ok();
  }

  Result<Summary> finish() {
    if (closed_.size() == e_->job.passes.size() && !dataset_) {
      reporter_->say(
          "every pass of this job is closed: nothing to train\n"
          "a closed pass is not trained again: add a pass for new data, or start over with "
          "--fresh");
      FLUX_RETURN_IF_ERROR(evaluate_pass());
    }
    Summary s = summarize();
    FLUX_RETURN_IF_ERROR(write_file_atomic(in_output("summary.json"), summary_json(s)));
    FLUX_RETURN_IF_ERROR(
        write_file_atomic(in_output("curve.svg"),
                          reporter_->curve().to_svg(job_.name, metrics_ ? metrics_->auc() : 0)));
    print_end(s);
    if (!evaluation_.is_ok()) return evaluation_.with_context("the model is saved, but the test");
    return s;
  }

  Summary summarize() {
    const Progress progress = worker_->progress();
    Summary s;
    s.job = job_.name;
    const bool all_closed = closed_.size() == e_->job.passes.size();
    const bool untested = stopped() && !e_->job.test.empty() && !metrics_;
    s.state = all_closed && !untested ? "complete" : "stopped";
    s.examples = progress.examples;
    s.train_s = train_s_;
    s.examples_per_s = train_s_ > 0 ? static_cast<double>(progress.examples) / train_s_ : 0;
    if (metrics_) {
      s.auc = metrics_->auc();
      s.logloss = metrics_->log_loss();
    }
    s.train_auc = progress.metrics.auc();
    s.train_logloss = progress.metrics.log_loss();
    std::vector<ClosedPass> passes = closed_;
    uint64_t partly = 0;
    if (dataset_ && pass_ >= closed_.size()) {
      // An open pass counts with what the ledgers say was applied; the counters must agree.
      passes.push_back({"open", examples_applied(pass_), 1, 0, 0});
      partly = examples_applied(pass_, true) - passes.back().records;
    }
    const FeatureCounts features = feature_counts(e_->job.data);
    s.accounting = account(*e_->server, passes, features.slots,
                           e_->job.data.key_per_example && all_closed, partly);
    s.rows = e_->rows();
    s.resumed_from = resumed_from_;
    s.precision = precision_name(e_->precision);
    s.threads = e_->threads;
    s.model_hash = e_->server->content_hash();
    s.peak_rss_bytes = peak_rss_bytes();
    s.wall_s = seconds_since(start_);
    return s;
  }

  void print_end(const Summary& s) {
    const Progress progress = worker_->progress();
    int64_t total = 0;
    for (const int64_t ns : progress.stage_ns) total += ns;
    std::string stages;
    for (size_t i = 0; i < kStages && total > 0; ++i)
      stages += fmt::format(
          "{}{} {:.1f}%", i > 0 ? ", " : "", stage_name(static_cast<Stage>(i)),
          100.0 * static_cast<double>(progress.stage_ns[i]) / static_cast<double>(total));
    if (!stages.empty()) reporter_->say("time by stage: " + stages);
    reporter_->say(accounting_line(s));
    const std::string model = last_checkpoint_.empty() ? resumed_from_ : last_checkpoint_;
    if (!model.empty())
      reporter_->say(fmt::format("model: {} ({} rows)\ncurve: {}", model, with_commas(s.rows),
                                 in_output("curve.svg")));
    if (s.state == "stopped")
      reporter_->say(fmt::format("stopped; to go on: {}", options_.resume_command));
  }

  RunOptions options_;
  TimeNs start_;
  Job job_;
  std::unique_ptr<OutputLock> lock_;
  std::unique_ptr<Embedded> e_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Dataset> dataset_;
  std::vector<ClosedPass> closed_;
  std::optional<BinaryMetrics> metrics_;
  Status evaluation_;
  std::string resumed_from_, last_checkpoint_;
  uint32_t pass_ = 0;
  std::atomic<uint32_t> sections_done_{0};  // of this pass; read by the thread of checkpoints
  double train_s_ = 0;
  TimeNs next_checkpoint_ = 0;
};

}  // namespace

Result<Summary> run_job(const Job& job, const RunOptions& options) {
  JobRun run(job, options);
  return run.run();
}

}  // namespace flux
