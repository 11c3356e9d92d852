// RoleKeeper: the servers and workers of a supervised job: started, started again, more or fewer.
//
// A role that dies is started again, at once the first time, by rate (main/restarts.h); it comes
// back as a new member of the job. One that ran out of memory is named; a worker comes back with
// half of what it held, and one that has the least and goes on dying of it is given up; a server
// that goes on is the end of the job. Who is drilled may die of it as often as the drill likes. In
// <output>/cluster/wanted.json the coordinator says how many there are to be, at least one of each:
// at every look more are started, workers too many are asked to leave (the highest first); servers
// too many are drained by the coordinator and end by themselves. It also says who is taken for
// dead: a process that stays so is killed, and so started again (main/hung_roles.h). Roles are
// spread over the hosts; those of a host that is lost start on another; when none is left they are
// tried again after pauses that grow, up to a deadline. Threads: one owner, that of the platform.
// Failure: failure(), when the job cannot go on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/job/job.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/commands.h"
#include "flux/main/host_list.h"
#include "flux/main/hung_roles.h"
#include "flux/main/kill_orders.h"
#include "flux/main/memory_watch.h"
#include "flux/main/restarts.h"
#include "flux/platform/platform.h"

namespace flux {

struct RoleKeeperOptions {
  RunArguments run;
  std::string program;
  std::string coordinator;  // its address
  std::string token;        // for roles of other hosts, by their standard input
  HostList hosts;
};

class RoleKeeper {
 public:
  using Say = std::function<void(const std::string&)>;
  RoleKeeper(const Job& job, RoleKeeperOptions options, const ClusterFolder& folder,
             Platform* platform, MemoryWatch* memory, Say say);

  Status start_all();
  void handle(const ProcessEnd& end);
  // Starts what is due, obeys wanted.json.
  void tick();
  // From now on nobody is started again.
  void job_ends() { ending_ = true; }
  const Status& failure() const { return failure_; }
  uint32_t servers() const { return servers_wanted_; }
  uint32_t workers() const { return workers_wanted_; }

 private:
  struct Member {
    std::string name;
    uint32_t number = 0;
    bool server = false;
    Restarts restarts;
    std::optional<ProcessId> process;
    std::string host;
    TimeNs start_at = 0;  // again; 0: not to be
    TimeNs started = 0;
    std::optional<WorkerShare> share;  // of a worker; none: as the job says
    bool retired = false;              // asked to leave
    int64_t log_from = 0;              // where the lines of this process begin
  };
  static bool here(const Member& member) { return member.process || member.start_at != 0; }
  uint32_t count(bool servers) const;
  void add(bool server);
  Status start(Member* member);
  std::vector<std::string> words(const Member& member) const;
  WorkerShare full_share() const;
  std::string listen_address(const Member& member) const;
  void add_kill_point(const Member& member, std::vector<std::string>* words);
  void start_due();
  void died(Member* member, const ProcessEnd& end);
  void host_lost(Member* member, const std::string& what);
  void out_of_memory(Member* member, const ProcessEnd& end);
  void no_memory_left(Member* member, const std::string& what);
  void give_up(Member* member, const std::string& what, Code code);
  void fail(Status status);
  void obey_wanted();
  void obey_numbers(const WantedRoles& wanted);
  void note_leaving(const WantedRoles& wanted);
  void kill_hung(const WantedRoles& wanted);
  bool is_process(const Member& member, uint32_t pid) const;
  void keep(bool servers);
  uint32_t& target(bool servers) { return servers ? servers_wanted_ : workers_wanted_; }
  void retire_highest_worker();
  // What this process has written, the last of it.
  std::string log_tail(const Member& member) const;

  const Job job_;
  RoleKeeperOptions options_;
  const ClusterFolder folder_;
  Platform* const platform_;
  MemoryWatch* const memory_;
  const Say say_;
  std::vector<Member> members_;
  KillOrders orders_;  // of a drill
  HungRoles hung_;
  HostPauses pauses_;
  uint32_t servers_wanted_ = 0, workers_wanted_ = 0;
  uint64_t wanted_orders_ = 0;  // of wanted.json, obeyed
  TimeNs look_at_ = 0;          // at wanted.json
  TimeNs quiet_until_ = 0;      // somebody left: the coordinator may say why before
  bool ending_ = false;
  Status failure_;
};

// Whether a drill has taken the memory of this process away.
bool starved_by_drill(const ClusterFolder& folder, int64_t pid);

// The address of a role's socket in the folder, or a port if that path is too long.
std::string local_address(const ClusterFolder& folder, const std::string& role);

}  // namespace flux
