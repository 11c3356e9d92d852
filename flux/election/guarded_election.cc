#include "flux/election/guarded_election.h"

#include <algorithm>
#include <utility>

namespace flux {

GuardedElection::GuardedElection(std::unique_ptr<Election> elected,
                                 std::unique_ptr<FolderElection> folder)
    : elected_(std::move(elected)), folder_(std::move(folder)) {}

void GuardedElection::announce(const Candidate& self) {
  elected_->announce(self);
  folder_->announce(self);
}

Result<uint64_t> GuardedElection::claim_term(uint64_t above) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    FLUX_ASSIGN_OR_RETURN(const uint64_t top, folder_->highest());
    FLUX_ASSIGN_OR_RETURN(const uint64_t term, elected_->claim_term(std::max(above, top)));
    const Status taken = folder_->take(term);
    if (taken.code() == Code::kStale) continue;
    FLUX_RETURN_IF_ERROR(taken);
    return term;
  }
  return error(Code::kUnavailable, "other coordinators keep claiming terms in the output folder");
}

Status GuardedElection::still_mine(uint64_t term) {
  FLUX_RETURN_IF_ERROR(elected_->still_mine(term));
  return folder_->still_mine(term);
}

}  // namespace flux
