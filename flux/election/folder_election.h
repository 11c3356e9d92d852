// FolderElection: terms as files in <output>/terms, for a job without etcd.
//
// A term is claimed by creating its file, which must not exist; the highest one is never removed,
// so whoever claims looks at it and at nothing else. The content (who claimed) is for people and
// for leader(). There is no waiting: campaign() leads at once, and whoever claims last wins; the
// one before notices in still_mine(). A term whose file is gone is no longer ours: somebody who
// took over has removed it, or the folder was lost. All through Files, so it runs on a simulated
// disk too; nothing random, no clock, no thread. Failure: as election.h, and the Files' own.
#pragma once

#include <mutex>
#include <string>

#include "flux/election/election.h"
#include "flux/storage/files.h"

namespace flux {

class FolderElection final : public Election {
 public:
  // `job` is for messages. `files` outlives this.
  FolderElection(Files* files, const std::string& output, std::string job);

  void announce(const Candidate& self) override;
  Status campaign(const std::atomic<bool>* stop) override;
  std::string waiting_for() const override { return ""; }
  Result<uint64_t> claim_term(uint64_t above) override;
  Status still_mine(uint64_t term) override;
  Status lease_held() const override { return Status::ok(); }
  Result<LeaderInfo> leader() override;
  Status resign() override { return Status::ok(); }

  // The highest term in the folder; 0: none.
  Result<uint64_t> highest();
  // Claims this very term, 1 to kTermMax; kStale if it or a higher one was claimed before.
  Status take(uint64_t term);

 private:
  std::string path_of(uint64_t term) const;

  Files* const files_;
  const std::string folder_;
  const std::string job_;
  std::mutex mutex_;  // guards self_
  Candidate self_;
};

}  // namespace flux
