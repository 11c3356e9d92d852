// FaultMaker: does what a drill's plan says, to the processes of one job, and undoes what lasts.
//
// Threads: one owner. Failure of make(): kNotFound when whom the fault is about is not there now
// (ask again soon), kInvalid when it can never be made here, with what to do. Whatever lasts is
// undone by heal_all(), also by the destructor: a drill leaves nobody stopped and nobody cut off.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flux/base/status.h"
#include "flux/main/cluster_folder.h"
#include "flux/main/drill_plan.h"
#include "flux/main/drill_processes.h"
#include "flux/main/drill_watch.h"
#include "flux/platform/local_platform.h"
#include "flux/rpc/fault_file.h"

namespace flux {

struct FaultMakerOptions {
  double pause_s = 30, partition_s = 5;
  bool vanish = false;    // what is cut off is lost, not delivered after the partition
  double at_wait_s = 15;  // a kill point that is not passed so long is given up
  double oom_wait_s = 5;  // so is whoever lives so long without memory
  std::optional<ClusterFolder> folder;  // of the job; without it no partition and no kill point
  std::string program;                  // this one, for `flux scale` and `flux drain`
  std::string target;                   // what they are told
};

class FaultMaker {
 public:
  FaultMaker(FaultMakerOptions options, DrillWatch* watch);
  ~FaultMaker();
  FaultMaker(const FaultMaker&) = delete;
  FaultMaker& operator=(const FaultMaker&) = delete;

  // Not for kKillAll, which is up to whoever starts the job again.
  Status make(const PlannedFault& fault, const std::vector<RoleProcess>& all, double t);
  // Undoes what is due, and looks whether armed kill points were passed.
  void tick(double t);
  void heal_all(double t);
  bool anything_lasts() const {
    return !lasting_.empty() || !armed_.empty() || !starving_.empty() || !starved_.empty() ||
           !helpers_.empty();
  }

 private:
  struct Lasting {
    DrillFault fault;
    double until = 0;
    std::vector<Faults::Drop> drops;
  };
  struct Armed {
    DrillFault fault;  // made when the process dies
    double until = 0;
    std::optional<RoleProcess> provoked;  // to be killed so that the point is passed
    double provoke_at = 0;
    bool newcomer = false;  // the point is for the successor of the victim
    Faults orders;          // what the faults file says meanwhile
  };
  struct Starving {
    DrillFault fault;  // made when the process dies
    OomDone done;
    double until = 0;
  };
  struct Starved {  // it is dead, and its supervisor may want to know of whom
    int64_t pid = 0;
    double until = 0;
  };
  struct Helper {
    DrillFault fault;  // made when the helper has done its work
    std::string text;
  };
  Status kill(const DrillFault& fault);
  Status pause(DrillFault fault);
  Status oom(DrillFault fault);
  Status check_listens(const RoleProcess& process) const;
  Status partition(DrillFault fault, bool both_ways);
  Status drain(DrillFault fault);
  Status scale(const PlannedFault& planned, DrillFault fault);
  Status arm(const PlannedFault& planned, DrillFault fault, const std::vector<RoleProcess>& all);
  void tick_armed(Armed* armed, double t, bool* over);
  static bool replaced(const Lasting& lasting);
  bool tick_starving(const Starving& starving, double t);
  void tick_helpers(double t);
  void heal(const Lasting& lasting, double t);
  Status run_flux(std::vector<std::string> words, DrillFault fault);
  Status write_faults() const;

  const FaultMakerOptions options_;
  DrillWatch* const watch_;
  LocalPlatform platform_;  // of helpers such as `flux scale`
  std::map<ProcessId, Helper> helpers_;
  std::vector<Lasting> lasting_;
  std::vector<Armed> armed_;
  std::vector<Starving> starving_;
  std::vector<Starved> starved_;
};

}  // namespace flux
