// ClusterFolder: what a running cluster leaves in its output folder for people and programs.
//
//   <output>/cluster/coordinator.json  process, addresses of the coordinator; gone after a clean
//   end <output>/cluster/admin_token       secret for POST /stop, mode 0600, made anew at each
//   start <output>/cluster/token             secret of a local cluster's own connections, mode 0600
//   <output>/cluster/faults.txt        faults that a drill asks for (rpc/fault_file.h)
//   <output>/cluster/wanted.json       how many roles are wanted, who is lost, who leaves
//   <output>/cluster/logs/<role>.log   lines with time and role
//   <output>/cluster/sockets/          Unix sockets of a local cluster, mode 0700
// The coordinator writes the first two, the supervisor of a local cluster the rest.
// Threads: any; values. Failure: Status that names the path.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flux/base/status.h"

namespace flux {

struct CoordinatorRecord {
  int64_t pid = 0;
  int64_t supervisor = 0;  // process that started it, 0: by hand
  std::string host;
  std::string listen;        // for roles: "unix:/...", "tcp:10.0.0.1:7000"
  std::string http;          // "http://127.0.0.1:40123"
  std::string certificates;  // folder, if it speaks TLS
  std::string command;       // that runs the job again
};

// What the coordinator asks of its supervisor. Absent: as it is.
struct WantedRoles {
  std::optional<uint32_t> workers, servers;
  uint64_t orders = 0;                      // rises when somebody asks for other numbers
  bool ending = false;                      // roles leave because the job ends
  std::map<std::string, uint32_t> lost;     // taken for dead and not back: process by name
  std::map<std::string, uint32_t> leaving;  // workers that are not counted any more
};
constexpr uint32_t kWantedMax = 1000;

class ClusterFolder {
 public:
  explicit ClusterFolder(const std::string& output);
  const std::string& path() const { return path_; }
  std::string logs() const;
  std::string log_of(const std::string& role) const;
  std::string sockets() const;
  std::string token_file() const;
  std::string faults_file() const;  // written by a drill, read by roles that are drillable
  std::string wanted_file() const;

  Status make() const;
  Status write_record(const CoordinatorRecord& record) const;
  // kNotFound if no coordinator has left one.
  Result<CoordinatorRecord> read_record() const;
  void remove_record() const;
  // The coordinator writes it, the supervisor obeys. Of use to this run only: not synced.
  Status write_wanted(const WantedRoles& wanted) const;
  // kNotFound if nobody wants anything.
  Result<WantedRoles> read_wanted() const;
  // A new secret in a file that only its owner reads; returns the secret.
  Result<std::string> make_secret(const char* name) const;
  Result<std::string> admin_token() const;
  // Roles that have a log.
  Result<std::vector<std::string>> roles() const;

 private:
  std::string path_;
};

constexpr const char* kAdminToken = "admin_token";
constexpr const char* kClusterToken = "token";

// A secret in a file; kInvalid if others may read it.
Result<std::string> read_secret(const std::string& path);
// 32 hexadecimal digits from the system's random numbers.
std::string new_secret();

}  // namespace flux
