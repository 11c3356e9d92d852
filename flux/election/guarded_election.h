// GuardedElection: who leads is decided by one election (etcd), and every term is claimed in the
// output folder too.
//
// So a coordinator that was started without etcd, or with another etcd, on the same folder is
// fenced off like any other: still_mine() asks both, and terms rise over both. Threads and failure:
// as election.h.
#pragma once

#include <memory>
#include <string>

#include "flux/election/election.h"
#include "flux/election/folder_election.h"

namespace flux {

class GuardedElection final : public Election {
 public:
  GuardedElection(std::unique_ptr<Election> elected, std::unique_ptr<FolderElection> folder);

  void announce(const Candidate& self) override;
  Status campaign(const std::atomic<bool>* stop) override { return elected_->campaign(stop); }
  std::string waiting_for() const override { return elected_->waiting_for(); }
  Result<uint64_t> claim_term(uint64_t above) override;
  Status still_mine(uint64_t term) override;
  Status lease_held() const override { return elected_->lease_held(); }
  Result<LeaderInfo> leader() override { return elected_->leader(); }
  Status resign() override { return elected_->resign(); }

 private:
  const std::unique_ptr<Election> elected_;
  const std::unique_ptr<FolderElection> folder_;
};

}  // namespace flux
