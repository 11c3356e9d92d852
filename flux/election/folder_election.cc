#include "flux/election/folder_election.h"

#include <algorithm>
#include <utility>

#include "flux/election/leader_text.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

constexpr uint64_t kContentMax = 64 << 10;

}  // namespace

FolderElection::FolderElection(Files* files, const std::string& output, std::string job)
    : files_(files), folder_(join_path(output, "terms")), job_(std::move(job)) {}

std::string FolderElection::path_of(uint64_t term) const {
  return join_path(folder_, term_name(term));
}

void FolderElection::announce(const Candidate& self) {
  const std::lock_guard lock(mutex_);
  self_ = self;
}

Status FolderElection::campaign(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load()) return Status(Code::kCancelled, "asked to stop");
  return Status::ok();
}

Result<uint64_t> FolderElection::highest() {
  FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(folder_));
  uint64_t highest = 0;
  for (const std::string& name : names) highest = std::max(highest, term_of(name).value_or(0));
  return highest;
}

Status FolderElection::take(uint64_t term) {
  FLUX_CHECK(term > 0 && term <= kTermMax, "term {}", term);
  LeaderInfo claim{term, {}};
  {
    const std::lock_guard lock(mutex_);
    claim.who = self_;
  }
  FLUX_RETURN_IF_ERROR(files_->make_folders(folder_));
  FLUX_RETURN_IF_ERROR(files_->create_exclusive(path_of(term), encode_leader(claim)));
  // A file below the highest may have been there before and been removed: then it proves nothing.
  // Without a higher one nothing has ever removed it, and we are the first.
  FLUX_ASSIGN_OR_RETURN(const uint64_t top, highest());
  if (top > term)
    return error(Code::kStale, "{}: term {} was claimed before {}", folder_, top, term);
  // Those before are of no use: a new claim looks at the highest only.
  FLUX_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_->list(folder_));
  for (const std::string& name : names)
    if (term_of(name) && *term_of(name) < term)
      FLUX_RETURN_IF_ERROR(files_->remove_all(join_path(folder_, name)));
  return Status::ok();
}

Result<uint64_t> FolderElection::claim_term(uint64_t above) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    FLUX_ASSIGN_OR_RETURN(const uint64_t top, highest());
    above = std::max(above, top);
    if (above >= kTermMax)
      return error(Code::kCorrupt, "{}: no term above {} can be claimed; terms end at {}", folder_,
                   above, kTermMax);
    ++above;
    const Status taken = take(above);
    if (taken.code() == Code::kStale) continue;
    FLUX_RETURN_IF_ERROR(taken);
    return above;
  }
  return error(Code::kUnavailable, "{}: other coordinators keep claiming terms", folder_);
}

Status FolderElection::still_mine(uint64_t term) {
  FLUX_ASSIGN_OR_RETURN(const uint64_t top, highest());
  if (top > term) {
    LeaderInfo taker;
    if (const auto text = files_->read(path_of(top), kContentMax); text.is_ok())
      taker = decode_leader(text.value());
    taker.term = top;
    return error(Code::kStale, "{} runs job {} now; this one (term {}) ends", describe(taker), job_,
                 term);
  }
  const auto text = files_->read(path_of(term), kContentMax);
  if (text.status().code() == Code::kNotFound)
    return error(Code::kStale,
                 "{} is gone: another coordinator runs job {} now, or the folder was cleared; this "
                 "one (term {}) ends",
                 path_of(term), job_, term);
  if (!text.is_ok()) return text.status();
  const std::lock_guard lock(mutex_);
  const LeaderInfo owner = decode_leader(text.value());
  if (owner.who.id == self_.id) return Status::ok();
  return error(Code::kStale, "{} claimed term {} of job {} after {} was cleared; this one ends",
               describe(owner), term, job_, folder_);
}

Result<LeaderInfo> FolderElection::leader() {
  FLUX_ASSIGN_OR_RETURN(const uint64_t top, highest());
  if (top == 0)
    return error(Code::kNotFound, "{}: no coordinator has claimed job {} yet", folder_, job_);
  LeaderInfo found;
  if (const auto text = files_->read(path_of(top), kContentMax); text.is_ok())
    found = decode_leader(text.value());
  found.term = top;
  return found;
}

}  // namespace flux
