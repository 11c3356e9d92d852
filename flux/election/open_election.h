// The election of a job as its command line asks for it: by the output folder alone, or by etcd
// with the folder as a second guard. Asks nobody yet. Failure: kInvalid says which option is wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "flux/election/election.h"
#include "flux/storage/files.h"

namespace flux {

struct ElectionSetup {
  Files* files = nullptr;                 // outlives the election
  std::string output;                     // with etcd: absolute, the same on every host
  std::string job;                        // its name
  std::string etcd;                       // "http://a:2379,http://b:2379"; empty: without
  std::string ca_file, certificate, key;  // for https://; may be empty
  int64_t ttl_s = 5;
};

Result<std::unique_ptr<Election>> open_election(const ElectionSetup& setup);

}  // namespace flux
