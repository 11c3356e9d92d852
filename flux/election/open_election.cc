#include "flux/election/open_election.h"

#include <utility>

#include "flux/election/etcd_election.h"
#include "flux/election/folder_election.h"
#include "flux/election/guarded_election.h"

namespace flux {

Result<std::unique_ptr<Election>> open_election(const ElectionSetup& setup) {
  auto folder = std::make_unique<FolderElection>(setup.files, setup.output, setup.job);
  if (setup.etcd.empty()) return std::unique_ptr<Election>(std::move(folder));
  EtcdElectionOptions options;
  FLUX_ASSIGN_OR_RETURN(options.etcd.endpoints, parse_endpoints(setup.etcd));
  options.etcd.ca_file = setup.ca_file;
  options.etcd.certificate = setup.certificate;
  options.etcd.key = setup.key;
  options.job = setup.job;
  options.output = setup.output;
  options.ttl_s = setup.ttl_s;
  FLUX_ASSIGN_OR_RETURN(auto etcd, EtcdElection::make(options));
  return std::unique_ptr<Election>(
      std::make_unique<GuardedElection>(std::move(etcd), std::move(folder)));
}

}  // namespace flux
