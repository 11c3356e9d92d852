// The folder read, shards placed, passes opened.
#include <algorithm>
#include <utility>

#include "flux/base/text.h"
#include "flux/coordinator/job_state.h"
#include "flux/coordinator/same_job.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {
constexpr ServerId kServersMax = 1U << 20;

// Examples of the skipped batches in sections up to `last` of their pass.
uint64_t skipped_examples(const Geometry& geometry, const Schedule& schedule,
                          const std::vector<BatchId>& skipped, uint32_t last) {
  uint64_t sum = 0;
  for (const BatchId& id : skipped)
    if (uint32_t{id.block.phase} * schedule.epochs + id.block.epoch <= last)
      sum += geometry.batch_records(id.block.block, id.batch);
  return sum;
}

// How a pass came by the `done` examples that every shard has marked.
std::string already(uint64_t done, uint64_t skipped) {
  if (done == 0) return "";
  if (skipped == 0) return fmt::format("; {} already applied", with_commas(done));
  if (skipped >= done) return fmt::format("; {} already skipped", with_commas(done));
  return fmt::format("; {} already applied, {} skipped", with_commas(done - skipped),
                     with_commas(skipped));
}
}  // namespace

struct JobMaster::State::Opened {
  std::optional<Manifest> manifest;
  std::vector<Decision> decisions;
  uint64_t term = 0;
  bool log_lost = false;
  std::vector<size_t> damaged;  // lines of the log
  Status leftovers;             // of former saves: whether all could be removed
};

void JobMaster::State::open_folder() {
  slowly<std::shared_ptr<Opened>>(
      [this, self = shared_from_this()]() -> Result<std::shared_ptr<Opened>> {
        auto opened = std::make_shared<Opened>();
        FLUX_RETURN_IF_ERROR(files_->make_folders(plan_.output));
        // A job that cannot run here takes nothing from one that does: the term is claimed last.
        FLUX_RETURN_IF_ERROR(find_manifest(&opened->manifest));
        if (plan_.check_inputs)
          FLUX_RETURN_IF_ERROR(plan_.check_inputs(opened->manifest ? opened->manifest->closed
                                                                   : std::vector<ClosedPass>()));
        FLUX_ASSIGN_OR_RETURN(
            opened->term,
            election_->claim_term(opened->manifest ? opened->manifest->epoch.term : 0));
        // A coordinator before us, which may be at work still, commits no more; it may have until
        // now.
        // Servers may be writing one of its checkpoints still: what cannot be removed now does no
        // harm, and goes with the next start.
        opened->leftovers = store().remove_leftovers();
        FLUX_RETURN_IF_ERROR(find_manifest(&opened->manifest));
        DecisionLog log(files_, in_output("coordinator.log"));
        opened->log_lost = opened->term > 1 && !files_->exists(log.path());
        if (!options_.fresh) {
          FLUX_ASSIGN_OR_RETURN(opened->decisions, log.read());
          opened->damaged = log.damaged();
          opened->decisions = compact(
              opened->decisions,
              opened->manifest ? static_cast<uint32_t>(opened->manifest->closed.size()) : 0);
        }
        std::vector<Decision> begun = opened->decisions;
        begun.emplace_back();
        begun.back().kind = "term";
        begun.back().term = opened->term;
        FLUX_RETURN_IF_ERROR(log.rewrite(begun));
        return opened;
      },
      [this](Result<std::shared_ptr<Opened>> opened) { folder_opened(std::move(opened)); });
}

Status JobMaster::State::find_manifest(std::optional<Manifest>* out) const {
  out->reset();
  if (options_.fresh) return Status::ok();
  auto newest = store().load_newest();
  if (newest.status().code() == Code::kNotFound) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(*out, std::move(newest));
  return check_same_job(store(), **out, plan_.model, plan_.passes, kTrainAdvice);
}

// Before anything is changed in the folder: has nobody claimed a later term?
Status JobMaster::State::still_mine() const {
  return election_->still_mine(term_);
}

void JobMaster::State::folder_opened(Result<std::shared_ptr<Opened>> opened) {
  if (ended()) return;
  if (!opened.is_ok()) return fail(opened.status());
  Opened& found = *opened.value();
  folder_open_ = true;
  term_ = found.term;
  log_lost_ = found.log_lost && !options_.fresh;
  decisions_ = std::move(found.decisions);
  for (const size_t line : found.damaged)
    say(fmt::format("warning: {}:{}: this line is damaged and is ignored",
                    in_output("coordinator.log"), line));
  if (!found.leftovers.is_ok())
    say(fmt::format("note: a checkpoint that was never finished stays for now: {}",
                    found.leftovers.message()));
  for (const Decision& d : decisions_) {
    if (d.kind == "server") servers_expected_.insert(d.member);
    if (d.kind == "worker") workers_expected_.insert(d.member);
    if (d.kind == "server" && d.id >= servers_.size() && d.id < kServersMax)
      servers_.resize(d.id + 1);  // their numbers are taken
    if (d.kind == "lr") lr_.emplace(plan_.lr, lr_logged_ = d.lr);
  }
  replay_looks();
  workers_members_ = Membership(options_.member_lease_ns, first_member_id(term_));
  ShardPlacesOptions places;
  places.replicas = plan_.replicas;
  places_.emplace(plan_.all_shards, term_, places);
  for (const Decision& d : decisions_)
    if (d.kind == "move" && d.id < plan_.all_shards) {
      places_->pin(static_cast<ShardId>(d.id), d.member);
      if (d.why != kMovedForLoad) fixed_shards_.insert(static_cast<ShardId>(d.id));
    }
  loads_.emplace(plan_.all_shards);
  rebalancer_.emplace(options_.rebalance);
  restored_ = std::move(found.manifest);
  newest_ = restored_;
  if (restored_) {
    closed_ = restored_->closed;
    resumed_from_ = store().path_of(restored_->number);
    committed_ = restored_->number;
    if (restored_->shards.size() != plan_.all_shards)
      return fail(error(Code::kCorrupt, "{}: {} shards, this job has {}", resumed_from_,
                        restored_->shards.size(), plan_.all_shards));
  }
  started_ = now();  // servers had nobody to join until now
  for (auto& [request, done] : std::exchange(early_servers_, {})) join_server(request, done);
  reach_standing();
  servers_complete_if();
}

// Nobody has anything of the job: every replica begins in the initial state where it is wanted, or
// is loaded from the newest checkpoint.
void JobMaster::State::place_and_open() {
  set_phase(Phase::kLoading);
  for (ServerId id = 0; id < servers_.size(); ++id)
    if (!servers_[id].gone) {
      servers_[id].ready = true;
      places_->joined(id, server_name(id));
    }
  if (!restored_) places_->place_all();
  if (!restored_ && term_ > 1 && !options_.fresh)
    say(
        fmt::format("no server holds job {} and {} has no finished checkpoint: it starts from the "
                    "beginning",
                    plan_.name, in_output("checkpoints")));
  for (ServerId id = 0; id < servers_.size(); ++id)
    if (!servers_[id].gone) opening_.insert(id);
  for (ServerId id = 0; id < servers_.size(); ++id) {
    if (servers_[id].gone) continue;
    OpenJob job = open_job_of(id);
    for (ShardId s = 0; s < plan_.all_shards && !restored_; ++s) {
      const ShardPlace& place = places_->place(s);
      if (place.primary == id)
        job.places.shards.push_back({s, place.epoch, ReplicaRole::kPrimary, place.backup, kAnyOp});
      if (place.backup == id)
        job.places.shards.push_back({s, place.epoch, ReplicaRole::kBackup, kNoServer, kAnyOp});
    }
    open_again(id, job, 0, guard([this, id](const Status& status) {
                 if (ended()) return;
                 // Whoever is at the address of a lost one by now may say anything.
                 const bool gone = status.code() == Code::kUnavailable || servers_[id].gone;
                 if (!status.is_ok() && !gone) return fail(status.with_context(server_name(id)));
                 if (gone) lose_server(id, "it cannot open the job: " + status.message());
                 opened_if(id);
               }));
  }
}

// Has everybody who is still there the job open?
void JobMaster::State::opened_if(ServerId id) {
  if (opening_.erase(id) == 0 || !opening_.empty() || ended()) return;
  places_on_ = true;
  pump_places();
  loaded_if();
}

// --fresh, once the new run's data is known to be good.
Status JobMaster::State::forget() const {
  // One by one, manifest first: killed on the way, what is left is whole.
  FLUX_RETURN_IF_ERROR(store().prune(0));
  FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> cuts, files_->list(in_output("geometry")));
  for (const std::string& name : cuts)
    FLUX_RETURN_IF_ERROR(files_->remove_all(join_path(in_output("geometry"), name)));
  // Not the log: it was begun anew with this term, and names the members that joined since.
  for (const char* name :
       {"best.json", "curve.tsv", "curve.svg", "summary.json", "report.html", "skipped.tsv"})
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
  if (pass_ < plan_.passes.size()) stop_if_due();
  const uint64_t adopted = open_geometry(pass_);
  const bool reopen =
      adopted != 0 || (restored_ && restored_->geometry != 0 && pass_ == restored_->closed.size());
  if (pass_ == plan_.passes.size() || (stopping_ && !reopen)) return after_pass();
  set_phase(Phase::kReading);
  pump();
  if (!reopen)
    say(plan_.reading ? plan_.reading(pass_)
                      : fmt::format("pass {}: reading its data", plan_.passes[pass_]));
  auto note = std::make_shared<std::string>();
  slowly<Geometry>([this, self = shared_from_this(), reopen, adopted, note,
                    pass = pass_] { return pass_geometry(pass, reopen, adopted, note.get()); },
                   [this, note](Result<Geometry> geometry) {
                     if (!note->empty()) say(*note);
                     pass_read(std::move(geometry));
                   });
}

Result<Geometry> JobMaster::State::pass_geometry(uint32_t pass, bool reopen, uint64_t adopted,
                                                 std::string* note) const {
  FLUX_RETURN_IF_ERROR(still_mine());
  const std::string path = join_path(in_output("geometry"), fmt::format("pass-{:05}.json", pass));
  if (adopted != 0 && files_->exists(path)) {
    constexpr uint64_t kCutMax = 1ULL << 30;
    FLUX_ASSIGN_OR_RETURN(const std::string text, files_->read(path, kCutMax));
    Result<Geometry> cut = Geometry::from_json(text);
    if (cut.is_ok() && cut.value().hash() == adopted) return cut;
  }
  const bool saved = restored_ && restored_->geometry != 0 && pass == restored_->closed.size();
  if (reopen && saved && (adopted == 0 || adopted == restored_->geometry))
    return frozen_geometry(pass, note);
  FLUX_ASSIGN_OR_RETURN(Geometry geometry, plan_.scan(pass, &stop_scan_));
  if (adopted != 0 && geometry.hash() != adopted)
    return error(Code::kStale,
                 "pass {} is open with another cut of its data, {} is lost and the data has "
                 "changed; end the servers and run the job again",
                 plan_.passes[pass], path);
  if (options_.fresh && pass == 0) FLUX_RETURN_IF_ERROR(forget());
  FLUX_RETURN_IF_ERROR(files_->make_folders(in_output("geometry")));
  FLUX_RETURN_IF_ERROR(files_->write_atomic(path, geometry.to_json()));
  Decision open;
  open.kind = "open_pass";
  open.term = term_;
  open.pass = pass;
  open.pass_name = plan_.passes[pass];
  open.geometry = geometry.hash();
  FLUX_RETURN_IF_ERROR(DecisionLog(files_, in_output("coordinator.log")).append(open));
  return geometry;
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
  tell_bad_records("pass " + plan_.passes[pass_], *geometry_);
  tell_all(
      "the pass to be opened",
      [pass = pass_, geometry = geometry_->hash()](ServerAdminPort* port, AdminCall call,
                                                   ServerAdminPort::Done done) {
        port->open_pass(std::move(call), pass, geometry, std::move(done));
      },
      [this](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        check_epochs(0);
      });
}

// Epochs may be added to an open pass, but what was trained cannot be taken back.
void JobMaster::State::check_epochs(uint16_t phase) {
  if (phase == plan_.schedule.phases) return mark_decided();
  ask_marked({pass_, phase, plan_.schedule.epochs, 0}, true,
             [this, phase](const Result<std::vector<uint32_t>>& marked) {
               if (ended()) return;
               if (!marked.is_ok()) return fail(marked.status());
               const auto& masks = marked.value();
               if (std::any_of(masks.begin(), masks.end(), [](uint32_t m) { return m != 0; }))
                 return fail(
                     invalid("pass {} was trained for more than {} epochs already\n"
                             "set epochs back until the pass is closed, or start over with --fresh",
                             plan_.passes[pass_], plan_.schedule.epochs));
               check_epochs(static_cast<uint16_t>(phase + 1));
             });
}

// Verdicts of a former life about this very cut stand.
void JobMaster::State::mark_decided() {
  const std::vector<BatchId> skipped = decided(Verdict::kSkipped);
  batches_skipped_ += skipped.size();
  if (skipped.empty()) return find_section(0);
  tell_all(
      "verdicts",
      [skipped, geometry = geometry_->hash()](ServerAdminPort* port, AdminCall call,
                                              ServerAdminPort::Done done) {
        port->mark(std::move(call), geometry, skipped, Verdict::kSkipped, std::move(done));
      },
      [this](const Status& status) {
        if (ended()) return;
        if (!status.is_ok()) return fail(status);
        find_section(0);
      });
}

// The first section that not every shard has completely.
void JobMaster::State::find_section(uint32_t section) {
  const uint64_t look = ++looks_;
  if (section == plan_.schedule.sections()) {
    section_ = section;
    if (phase_ == Phase::kReading) train_from(section, {});
    return close_pass();
  }
  ask_marked(plan_.schedule.section(pass_, section), false,
             [this, section, look, losses = losses_](const Result<std::vector<uint32_t>>& marked) {
               if (ended() || phase_ == Phase::kDraining || look != looks_) return;
               if (!marked.is_ok()) return fail(marked.status());
               if (losses != losses_) return find_section(0);
               uint32_t complete = 0;
               for (uint32_t b = 0; b < geometry_->blocks.size(); ++b) {
                 const uint32_t all = batch_mask(geometry_->batches_in(b));
                 complete += (marked.value()[b] & all) == all ? 1 : 0;
               }
               if (complete == geometry_->blocks.size()) return find_section(section + 1);
               if (phase_ != Phase::kTraining) train_from(section, marked.value());
               if (phase_ == Phase::kTraining) begin_section(section, marked.value());
             });
}

// Training of this pass begins (again) at `section`.
void JobMaster::State::train_from(uint32_t section, const std::vector<uint32_t>& marked) {
  const Geometry& geometry = *geometry_;
  const uint64_t before = geometry.records() * section + (marked.empty() ? 0 : examples_in(marked));
  const uint64_t skipped =
      skipped_examples(geometry, plan_.schedule, decided(Verdict::kSkipped), section);
  say(fmt::format("pass {}: {} x {}, {}, {} batch{} of {}{}", plan_.passes[pass_],
                  counted(geometry.records(), "example"), plan_.schedule.sections(),
                  counted(geometry.blocks.size(), "block"), with_commas(geometry.batches()),
                  geometry.batches() == 1 ? "" : "es", geometry.batch_size,
                  already(before, skipped)));
  section_ = section;
  set_phase(Phase::kTraining);
  train_start_ = now();
  base_examples_ =
      closed_examples() + before - std::min(closed_examples() + before, sum_reports().examples);
  total_examples_ = closed_examples() + geometry.records() * plan_.schedule.sections();
  const auto every = static_cast<TimeNs>(plan_.checkpoint_every_s * static_cast<double>(kSecond));
  // How old the last checkpoint is, a coordinator that took over does not know: if each of them
  // waited its full time, a job whose coordinators die would never be saved.
  const bool overdue = adopted_ && checkpoint_time_ == 0;
  next_checkpoint_ = now() + (overdue ? std::min(every, kSecond) : every);
  events_->training(true, closed_examples() + before, total_examples_);
  looked_ = sum_reports();
  // A pass that is complete is closed before the end.
  if (stopping_ && section < plan_.schedule.sections()) drain();
}

}  // namespace flux
