// The folder read, servers placed, shards loaded, passes opened.
#include <algorithm>
#include <utility>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"
#include "flux/coordinator/same_job.h"
#include "flux/storage/atomic_file.h"

namespace flux {

struct JobMaster::State::Opened {
  std::optional<Manifest> manifest;
  std::vector<Decision> decisions;
  uint64_t term = 0;
};

namespace {

bool is_term(const std::string& name) {
  return name.size() == 12 && name.find_first_not_of("0123456789") == std::string::npos;
}

// A term belongs to one coordinator for ever: whoever creates its file first.
Result<uint64_t> claim_term(Files* files, const std::string& folder, uint64_t above) {
  FLUX_RETURN_IF_ERROR(files->make_folders(folder));
  for (const std::string& name : files->list(folder))
    if (is_term(name)) above = std::max<uint64_t>(above, std::stoull(name));
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    const std::string path = join_path(folder, fmt::format("{:012}", ++above));
    const Status created = files->create_exclusive(path, "");
    if (created.code() == Code::kStale) continue;
    FLUX_RETURN_IF_ERROR(created);
    // Those before are of no use: a new claim looks at the highest only.
    for (const std::string& name : files->list(folder))
      if (name < fmt::format("{:012}", above))
        FLUX_RETURN_IF_ERROR(files->remove_all(join_path(folder, name)));
    return above;
  }
  return error(Code::kUnavailable, "{}: other coordinators keep claiming terms", folder);
}

}  // namespace

void JobMaster::State::open_folder() {
  slowly<std::shared_ptr<Opened>>(
      [this, self = shared_from_this()]() -> Result<std::shared_ptr<Opened>> {
        auto opened = std::make_shared<Opened>();
        FLUX_RETURN_IF_ERROR(files_->make_folders(plan_.output));
        // A job that cannot run here takes nothing from one that does: the term is claimed last.
        FLUX_RETURN_IF_ERROR(find_manifest(&opened->manifest));
        if (plan_.check_inputs)
          FLUX_RETURN_IF_ERROR(plan_.check_inputs(
              opened->manifest ? static_cast<uint32_t>(opened->manifest->closed.size()) : 0));
        FLUX_ASSIGN_OR_RETURN(opened->term,
                              claim_term(files_, in_output("terms"),
                                         opened->manifest ? opened->manifest->epoch.term : 0));
        // A coordinator before us, which may be at work still, commits no more; it may have until
        // now.
        FLUX_RETURN_IF_ERROR(store().remove_leftovers());
        FLUX_RETURN_IF_ERROR(find_manifest(&opened->manifest));
        DecisionLog log(files_, in_output("coordinator.log"));
        if (!options_.fresh) {
          FLUX_ASSIGN_OR_RETURN(opened->decisions, log.read());
        }
        return opened;
      },
      [this](Result<std::shared_ptr<Opened>> opened) { folder_opened(std::move(opened)); });
}

Status JobMaster::State::find_manifest(std::optional<Manifest>* out) const {
  out->reset();
  if (options_.fresh || store().committed().empty()) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(*out, store().load_newest());
  return check_same_job(store(), **out, plan_.model, plan_.passes);
}

// Before anything is changed in the folder: has nobody claimed a later term?
Status JobMaster::State::still_mine() const {
  for (const std::string& name : files_->list(in_output("terms")))
    if (is_term(name) && std::stoull(name) > epoch_.term)
      return error(Code::kStale,
                   "another coordinator (term {}) runs job {} now; this one (term {}) ends",
                   std::stoull(name), plan_.name, epoch_.term);
  return Status::ok();
}

void JobMaster::State::folder_opened(Result<std::shared_ptr<Opened>> opened) {
  if (ended()) return;
  if (!opened.is_ok()) return fail(opened.status());
  Opened& found = *opened.value();
  folder_open_ = true;
  epoch_ = {found.term, 1};
  decisions_ = std::move(found.decisions);
  restored_ = std::move(found.manifest);
  if (restored_) {
    closed_ = restored_->closed;
    resumed_from_ = store().path_of(restored_->number);
  }
  servers_complete_if();
}

void JobMaster::State::servers_complete_if() {
  if (phase_ != Phase::kJoining || !folder_open_ || servers_here() < options_.servers) return;
  place_and_open();
}

void JobMaster::State::place_and_open() {
  set_phase(Phase::kLoading);
  map_.emplace(plan_.all_shards, epoch_.term);
  map_->place(server_names());
  call_all(
      [this](size_t i, ServerAdminPort::Done done) {
        OpenJob job;
        job.name = fmt::format("{} in {}", plan_.name, plan_.output);
        job.job = plan_.spec;
        job.incarnation = options_.incarnation;
        job.epoch = {epoch_.term, map_->version()};
        job.shards = map_->owned_by(static_cast<ServerId>(i));
        admin(i)->open_job(std::move(job), std::move(done));
      },
      [this](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        opened_ = true;
        load_shards();
      });
}

void JobMaster::State::load_shards() {
  if (!restored_) return next_pass();
  const Manifest& manifest = *restored_;
  if (manifest.shards.size() != plan_.all_shards)
    return fail(error(Code::kCorrupt, "{}: {} shards, this job has {}", resumed_from_,
                      manifest.shards.size(), plan_.all_shards));
  const TimeNs start = now();
  call_all(
      [this, &manifest](size_t i, ServerAdminPort::Done done) {
        LoadJob load;
        load.folder = checkpoint_folder_;
        load.number = manifest.number;
        load.closed_below = static_cast<uint32_t>(manifest.closed.size());
        for (const ShardId s : map_->owned_by(static_cast<ServerId>(i))) {
          const FileInfo& file = manifest.shards[s].file;
          load.shards.push_back({s, file.name, file.bytes, file.hash});
        }
        admin(i)->load(options_.incarnation, std::move(load), std::move(done));
      },
      [this, start](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        uint64_t rows = 0;
        for (const ShardEntry& shard : restored_->shards) rows += shard.rows;
        for (uint32_t s = plan_.sparse_shards; s < plan_.all_shards; ++s)
          rows -= restored_->shards[s].rows;
        say(fmt::format("resumed from {} of {}: {} passes closed, {} rows ({:.1f} s)",
                        resumed_from_, restored_->created, closed_.size(), with_commas(rows),
                        static_cast<double>(now() - start) * 1e-9));
        next_pass();
      });
}

// --fresh, once the new run's data is known to be good.
Status JobMaster::State::forget() const {
  // One by one, manifest first: killed on the way, what is left is whole.
  FLUX_RETURN_IF_ERROR(store().prune(0));
  for (const std::string& name : files_->list(in_output("geometry")))
    FLUX_RETURN_IF_ERROR(files_->remove_all(join_path(in_output("geometry"), name)));
  for (const char* name : {"curve.tsv", "curve.svg", "summary.json", "coordinator.log"})
    FLUX_RETURN_IF_ERROR(files_->remove_all(in_output(name)));
  return Status::ok();
}

Result<Geometry> JobMaster::State::frozen_geometry(uint32_t pass, std::string* note) const {
  for (const FileInfo& file : restored_->files) {
    if (file.name != "geometry.json") continue;
    FLUX_ASSIGN_OR_RETURN(const std::string text, store().read(*restored_, file));
    FLUX_ASSIGN_OR_RETURN(Geometry frozen, Geometry::from_json(text));
    if (frozen.hash() != restored_->geometry)
      return error(Code::kCorrupt, "{}: geometry.json is not the cut that the manifest names",
                   resumed_from_);
    FLUX_ASSIGN_OR_RETURN(*note, plan_.check_frozen(pass, frozen));
    return frozen;
  }
  return error(Code::kCorrupt, "{} has no geometry.json", resumed_from_);
}

void JobMaster::State::next_pass() {
  pass_ = static_cast<uint32_t>(closed_.size());
  const bool reopen = restored_ && restored_->geometry != 0 && pass_ == restored_->closed.size();
  if (pass_ == plan_.passes.size() || (stopping_ && !reopen)) return after_pass();
  set_phase(Phase::kReading);
  pump();
  if (!reopen)
    say(plan_.reading ? plan_.reading(pass_)
                      : fmt::format("pass {}: reading its data", plan_.passes[pass_]));
  auto note = std::make_shared<std::string>();
  slowly<Geometry>(
      [this, self = shared_from_this(), reopen, note, pass = pass_]() -> Result<Geometry> {
        if (reopen) return frozen_geometry(pass, note.get());
        FLUX_ASSIGN_OR_RETURN(Geometry geometry, plan_.scan(pass, &stop_scan_));
        if (options_.fresh && pass == 0) FLUX_RETURN_IF_ERROR(forget());
        FLUX_RETURN_IF_ERROR(files_->make_folders(in_output("geometry")));
        const std::string name = fmt::format("pass-{:05}.json", pass);
        FLUX_RETURN_IF_ERROR(
            files_->write_atomic(join_path(in_output("geometry"), name), geometry.to_json()));
        Decision open;
        open.kind = "open_pass";
        open.term = epoch_.term;
        open.pass = pass;
        open.pass_name = plan_.passes[pass];
        open.geometry = geometry.hash();
        FLUX_RETURN_IF_ERROR(DecisionLog(files_, in_output("coordinator.log")).append(open));
        return geometry;
      },
      [this, note](Result<Geometry> geometry) {
        if (!note->empty()) say(*note);
        pass_read(std::move(geometry));
      });
}

void JobMaster::State::pass_read(Result<Geometry> geometry) {
  if (ended()) return;
  if (geometry.status().code() == Code::kCancelled) return after_pass();
  if (!geometry.is_ok()) return fail(geometry.status());
  // A worker that is late may still ask for the cut before.
  if (geometry_)
    std::erase_if(geometry_texts_,
                  [&](const auto& text) { return text.first != geometry_->hash(); });
  geometry_ = std::move(geometry).value();
  geometry_texts_[geometry_->hash()] = geometry_->to_json();
  pass_open_ = true;
  call_all(
      [this](size_t i, ServerAdminPort::Done done) {
        admin(i)->open_pass(options_.incarnation, pass_, geometry_->hash(), std::move(done));
      },
      [this](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        check_epochs(0);
      });
}

// Epochs may be added to an open pass, but what was trained cannot be taken back.
void JobMaster::State::check_epochs(uint16_t phase) {
  if (phase == plan_.schedule.phases) return mark_decided(0);
  ask_marked({pass_, phase, plan_.schedule.epochs, 0}, true,
             guard([this, phase](const Result<std::vector<uint32_t>>& marked) {
               if (ended()) return;
               if (!marked.is_ok()) return fail(marked.status());
               const auto& masks = marked.value();
               if (std::any_of(masks.begin(), masks.end(), [](uint32_t m) { return m != 0; }))
                 return fail(
                     invalid("pass {} was trained for more than {} epochs already\n"
                             "set epochs back until the pass is closed, or start over with --fresh",
                             plan_.passes[pass_], plan_.schedule.epochs));
               check_epochs(static_cast<uint16_t>(phase + 1));
             }));
}

// Verdicts of a former life about this very cut stand.
void JobMaster::State::mark_decided(size_t i) {
  while (i < decisions_.size() && (decisions_[i].kind != "verdict" || decisions_[i].pass != pass_ ||
                                   decisions_[i].geometry != geometry_->hash()))
    ++i;
  if (i == decisions_.size()) return find_section(0);
  ++batches_skipped_;
  call_all(
      [this, i](size_t server, ServerAdminPort::Done done) {
        admin(server)->mark(options_.incarnation, geometry_->hash(), {decisions_[i].batch},
                            decisions_[i].verdict, std::move(done));
      },
      [this, i](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        mark_decided(i + 1);
      });
}

// The first section that not every shard has completely.
void JobMaster::State::find_section(uint32_t section) {
  if (section == plan_.schedule.sections()) {
    section_ = section;
    if (phase_ == Phase::kReading) train_from(section, {});
    return close_pass();
  }
  ask_marked(plan_.schedule.section(pass_, section), false,
             guard([this, section](const Result<std::vector<uint32_t>>& marked) {
               if (ended()) return;
               if (!marked.is_ok()) return fail(marked.status());
               uint32_t complete = 0;
               for (uint32_t b = 0; b < geometry_->blocks.size(); ++b) {
                 const uint32_t all = batch_mask(geometry_->batches_in(b));
                 complete += (marked.value()[b] & all) == all ? 1 : 0;
               }
               if (complete == geometry_->blocks.size()) return find_section(section + 1);
               if (phase_ == Phase::kReading) train_from(section, marked.value());
               if (phase_ == Phase::kTraining) begin_section(section, marked.value());
             }));
}

// Training of this pass begins (again) at `section`.
void JobMaster::State::train_from(uint32_t section, const std::vector<uint32_t>& marked) {
  const Geometry& geometry = *geometry_;
  const uint64_t before = geometry.records() * section + (marked.empty() ? 0 : examples_in(marked));
  say(fmt::format("pass {}: {} examples x {}, {} blocks, {} batches of {}{}", plan_.passes[pass_],
                  with_commas(geometry.records()), plan_.schedule.sections(),
                  geometry.blocks.size(), with_commas(geometry.batches()), geometry.batch_size,
                  before > 0 ? fmt::format("; {} already applied", with_commas(before)) : ""));
  section_ = section;
  set_phase(Phase::kTraining);
  train_start_ = now();
  base_examples_ =
      closed_examples() + before - std::min(closed_examples() + before, sum_reports().examples);
  total_examples_ = closed_examples() + geometry.records() * plan_.schedule.sections();
  next_checkpoint_ =
      now() + static_cast<TimeNs>(plan_.checkpoint_every_s * static_cast<double>(kSecond));
  events_->training(true, closed_examples() + before, total_examples_);
  if (stopping_) drain();
}

}  // namespace flux
