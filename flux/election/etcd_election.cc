#include "flux/election/etcd_election.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "flux/base/hash.h"
#include "flux/election/leader_text.h"

namespace flux {
namespace {

using Kind = EtcdStep::Kind;

constexpr int kClaimTries = 20;
// A lease that is not given back runs out by itself.
constexpr EtcdLimit kGiveBack{kSecond, kSecond};

std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    out += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string prefix_of(const EtcdElectionOptions& options) {
  std::string output = std::filesystem::path(options.output).lexically_normal().string();
  while (output.size() > 1 && output.ends_with('/')) output.pop_back();
  return fmt::format("/flux/{}/{:016x}/", escaped(options.job), hash_bytes(output));
}

}  // namespace

Result<std::unique_ptr<EtcdElection>> EtcdElection::make(const EtcdElectionOptions& options) {
  if (options.ttl_s < 2 || options.ttl_s > 60)
    return invalid("a lease of {} s at etcd: it has to last 2 to 60 s", options.ttl_s);
  if (options.job.empty()) return invalid("an election at etcd needs the job's name");
  if (!std::filesystem::path(options.output).is_absolute())
    return invalid("an election at etcd needs the output folder as an absolute path, not '{}'",
                   options.output);
  FLUX_ASSIGN_OR_RETURN(auto client, EtcdClient::make(options.etcd));
  return std::unique_ptr<EtcdElection>(new EtcdElection(options, std::move(client)));
}

EtcdElection::EtcdElection(EtcdElectionOptions options, std::unique_ptr<EtcdClient> client)
    : options_(std::move(options)),
      client_(std::move(client)),
      leader_key_(prefix_of(options_) + "leader"),
      terms_key_(prefix_of(options_) + "term/"),
      terms_end_(prefix_of(options_) + "term0") {}  // '0' comes after '/'

EtcdElection::~EtcdElection() {
  (void)resign();
}

void EtcdElection::announce(const Candidate& self) {
  const std::lock_guard lock(mutex_);
  self_ = self;
}

Candidate EtcdElection::self() const {
  const std::lock_guard lock(mutex_);
  return self_;
}

std::string EtcdElection::waiting_for() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void EtcdElection::set_waiting(std::string what) {
  const std::lock_guard lock(mutex_);
  waiting_ = std::move(what);
}

std::string EtcdElection::term_key(uint64_t term) const {
  return terms_key_ + term_name(term);
}
EtcdStep EtcdElection::get_leader() const {
  return {Kind::kGet, leader_key_, "", "", 0};
}
EtcdStep EtcdElection::get_last_term() const {
  return {Kind::kLast, terms_key_, terms_end_, "", 0};
}

std::shared_ptr<EtcdElection::Leadership> EtcdElection::leadership() const {
  const std::lock_guard lock(mutex_);
  return leadership_;
}

Status EtcdElection::lease_held() const {
  const auto mine = leadership();
  return mine == nullptr ? error(Code::kStale, "this process does not lead job {}", options_.job)
                         : mine->keeper.held().with_context(fmt::format("job {}", options_.job));
}

Result<std::shared_ptr<EtcdElection::Leadership>> EtcdElection::leading() const {
  auto mine = leadership();
  FLUX_RETURN_IF_ERROR(lease_held());
  if (mine == nullptr)
    return error(Code::kStale, "this process does not lead job {}", options_.job);
  return mine;
}

// --- leading ---

Status EtcdElection::campaign(const std::atomic<bool>* stop) {
  if (lease_held().is_ok()) return Status::ok();
  (void)resign();
  const TimeNs give_up = boot_now_ns() + options_.first_answer_ns;
  bool answered = false;
  for (;;) {
    if (stop != nullptr && stop->load()) {
      set_waiting("");
      return Status(Code::kCancelled, "asked to stop while standing by");
    }
    const Result<Attempt> attempt = try_to_lead();
    if (attempt.is_ok()) {
      answered = true;
      if (attempt.value().leads) {
        set_waiting("");
        return Status::ok();
      }
      set_waiting(fmt::format("for {}, which leads job {}, to end", describe(attempt.value().other),
                              options_.job));
    } else {
      const Status& problem = attempt.status();
      if (problem.code() == Code::kInvalid || (!answered && boot_now_ns() >= give_up)) {
        set_waiting("");
        return problem;
      }
      set_waiting("for etcd to answer: " + problem.message());
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(options_.poll_ns));
  }
}

Result<EtcdElection::Attempt> EtcdElection::try_to_lead() {
  FLUX_ASSIGN_OR_RETURN(const EtcdAnswer now, client_->txn({}, {get_leader()}, {}, options_.limit));
  if (!now.found.front().empty())
    return Attempt{false, decode_leader(now.found.front().front().value)};
  const TimeNs asked = boot_now_ns();
  FLUX_ASSIGN_OR_RETURN(const EtcdLease lease, client_->grant(options_.ttl_s, options_.limit));
  Result<Attempt> attempt = take_leader_key(lease, asked);
  if (!attempt.is_ok() || !attempt.value().leads) (void)client_->revoke(lease.id, kGiveBack);
  return attempt;
}

Result<EtcdElection::Attempt> EtcdElection::take_leader_key(const EtcdLease& lease, TimeNs asked) {
  const EtcdStep put{Kind::kPut, leader_key_, "", encode_leader({0, self()}), lease.id};
  FLUX_ASSIGN_OR_RETURN(const EtcdAnswer answer, client_->txn({{leader_key_, "", 0}}, {put},
                                                              {get_leader()}, options_.limit));
  int64_t created = answer.revision;
  if (!answer.succeeded) {
    const auto& found = answer.found.front();
    if (found.empty())
      return error(Code::kUnavailable, "{}: etcd says that somebody leads and nobody does",
                   client_->urls());
    // An attempt before whose answer was lost may have been ours.
    if (found.front().lease != lease.id) return Attempt{false, decode_leader(found.front().value)};
    created = found.front().create_revision;
  }
  auto mine = std::make_shared<Leadership>(client_.get(), lease, asked, created);
  FLUX_RETURN_IF_ERROR(mine->keeper.held().is_ok()
                           ? Status::ok()
                           : error(Code::kUnavailable, "{}: etcd is too slow for a lease of {} s",
                                   client_->urls(), lease.ttl_s));
  const std::lock_guard lock(mutex_);
  leadership_ = std::move(mine);
  return Attempt{true, {}};
}

Status EtcdElection::resign() {
  std::shared_ptr<Leadership> mine;
  {
    const std::lock_guard lock(mutex_);
    mine = std::exchange(leadership_, nullptr);
  }
  if (mine == nullptr) return Status::ok();
  mine->keeper.give_up(error(Code::kStale, "this process has resigned"));
  const Status given = client_->revoke(mine->keeper.lease(), kGiveBack);
  return given.code() == Code::kNotFound ? Status::ok() : given;
}

// --- terms ---

Result<EtcdElection::View> EtcdElection::read_view(const EtcdAnswer& answer) const {
  View view;
  if (!answer.found[0].empty()) view.leader = answer.found[0].front();
  if (answer.found[1].empty()) return view;
  const EtcdPair& last = answer.found[1].front();
  const auto term = term_of(last.key.substr(std::min(terms_key_.size(), last.key.size())));
  if (!term)
    return error(Code::kCorrupt, "{}: the key '{}' at etcd is not one of ours; remove it",
                 client_->urls(), last.key);
  view.term = *term;
  view.term_owner = decode_leader(last.value);
  view.term_owner.term = *term;
  return view;
}

Status EtcdElection::deposed_by(const View& view) const {
  if (view.leader.create_revision == 0)
    return error(Code::kStale, "job {}: etcd has ended the lease of this coordinator; nobody leads",
                 options_.job);
  return error(Code::kStale, "{} leads job {} now; this coordinator ends",
               describe(decode_leader(view.leader.value)), options_.job);
}

Result<uint64_t> EtcdElection::claim_term(uint64_t above) {
  FLUX_ASSIGN_OR_RETURN(const auto mine, leading());
  FLUX_ASSIGN_OR_RETURN(const EtcdAnswer answer,
                        client_->txn({}, {get_leader(), get_last_term()}, {}, options_.limit));
  FLUX_ASSIGN_OR_RETURN(View seen, read_view(answer));
  for (int i = 0; i < kClaimTries; ++i) {
    const uint64_t highest = std::max(above, seen.term);
    if (highest >= kTermMax)
      return error(Code::kCorrupt, "job {}: no term above {} can be claimed; terms end at {}",
                   options_.job, highest, kTermMax);
    const Status claimed = claim(*mine, highest + 1, &seen);
    if (claimed.is_ok()) {
      FLUX_RETURN_IF_ERROR(mine->keeper.held());
      return highest + 1;
    }
    // The request may have been answered twice over, or by a cluster that forgot: go above.
    if (claimed.code() != Code::kNotFound) return claimed;
  }
  return error(Code::kUnavailable, "{}: terms of job {} change under our hands", client_->urls(),
               options_.job);
}

// kNotFound: not this term, see *seen.
Status EtcdElection::claim(const Leadership& mine, uint64_t term, View* seen) {
  const std::string value = encode_leader({term, self()});
  const std::vector<EtcdStep> then = {
      {Kind::kPut, term_key(term), "", value, 0},
      {Kind::kPut, leader_key_, "", value, mine.keeper.lease()},
      {Kind::kRemove, term_key(0), term_key(term), "", 0},
  };
  const Result<EtcdAnswer> answer =
      client_->txn({{leader_key_, "", mine.revision}, {term_key(term), terms_end_, 0}}, then,
                   {get_leader(), get_last_term()}, options_.limit);
  if (answer.status().code() == Code::kNotFound)
    return error(Code::kStale, "job {}: the lease of this coordinator has run out: {}",
                 options_.job, answer.status().message());
  if (!answer.is_ok()) return answer.status();
  if (answer.value().succeeded) return Status::ok();
  FLUX_ASSIGN_OR_RETURN(*seen, read_view(answer.value()));
  if (seen->leader.create_revision != mine.revision) return deposed_by(*seen);
  return error(Code::kNotFound, "term {} is taken", term);
}

Status EtcdElection::still_mine(uint64_t term) {
  FLUX_ASSIGN_OR_RETURN(const auto mine, leading());
  EtcdLimit limit = options_.limit;
  limit.total = std::min(limit.total, mine->keeper.left_ns());
  const Result<EtcdAnswer> answer = client_->txn({}, {get_leader(), get_last_term()}, {}, limit);
  FLUX_RETURN_IF_ERROR(lease_held());  // it may have run out while we asked
  if (!answer.is_ok()) return answer.status();
  FLUX_ASSIGN_OR_RETURN(const View view, read_view(answer.value()));
  Status stale = Status::ok();
  if (view.leader.create_revision != mine->revision)
    stale = deposed_by(view);
  else if (view.term > term)
    stale = error(Code::kStale, "{} runs job {} now; this one (term {}) ends",
                  describe(view.term_owner), options_.job, term);
  else if (view.term < term || view.term_owner.who.id != self().id)
    stale = error(Code::kStale, "job {}: term {} is not ours at etcd, which knows term {}",
                  options_.job, term, view.term);
  if (stale.is_ok()) return stale;
  if (view.leader.create_revision != mine->revision) mine->keeper.give_up(stale);
  return stale;
}

Result<LeaderInfo> EtcdElection::leader() {
  FLUX_ASSIGN_OR_RETURN(const EtcdAnswer now, client_->txn({}, {get_leader()}, {}, options_.limit));
  if (now.found.front().empty())
    return error(Code::kNotFound, "{}: nobody leads job {} now", client_->urls(), options_.job);
  return decode_leader(now.found.front().front().value);
}

}  // namespace flux
