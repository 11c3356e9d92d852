// DrillWatch: what a job did while it was drilled, made of samples of its status.
//
// Fed with one sample after the other (a status, or none while the coordinator is away) and with
// every fault as it is made; keeps both, and works out for each fault when the job had noticed it,
// when the process was back, when workers trained again, when examples were applied that were not
// before, and when the speed was back; the longest stall; goodput. Times are seconds since the
// begin of the drill; their precision is that of the samples. Pure: no clock, no process. Threads:
// one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flux/coordinator/job_status.h"
#include "flux/main/drill_plan.h"
#include "flux/main/drill_processes.h"

namespace flux {

struct DrillSample {
  double t = 0;
  bool answered = false;
  std::string state;     // as in JobStatus; empty while nobody answers
  uint64_t applied = 0;  // unique examples, the most so far: does not fall when a job goes back
  uint64_t trained = 0;  // by the workers of this run, repeats counted
  uint32_t workers = 0, servers = 0;
  uint64_t term = 0, map_version = 0;
  std::string wait;  // the longest one: "worker-1: for ..."
};

struct DrillEvent {
  double t = 0;
  uint32_t fault = 0;  // number, 0: none
  std::string what;
};

// One fault that was made.
struct DrillFault {
  uint32_t number = 0;
  FaultKind kind = FaultKind::kKill;
  std::string label, text;           // "kill worker", "kill worker-1 (process 4711)"
  std::vector<RoleProcess> victims;  // of kScale: none
  std::string scale;                 // of kScale: "workers" or "servers"
  uint32_t size = 0;                 // of kScale: so many are wanted
  double t = 0;
  std::optional<double> healed;  // pauses and partitions: when they ended
  // Seconds since t, or of a healed fault, but for `noticed`, since it was healed.
  std::optional<double> noticed_s;    // the status shows the victims no more, or the wanted number
  std::optional<double> back_s;       // every victim's name runs again; that number is there
  std::optional<double> trains_s;     // noticed, and workers train, be it what was trained before
  std::optional<double> new_s;        // noticed, and more examples are applied than ever before
  std::optional<double> speed_s;      // 80 % of the speed before
  std::optional<double> recovered_s;  // what counts for this kind; see the .cc
  // Who is drained is gone for good.
  bool over() const {
    return given_up || (recovered_s && new_s && speed_s && (back_s || kind == FaultKind::kDrain));
  }
  bool given_up = false;      // nobody waits for it any more
  bool unnoticeable = false;  // by now somebody else's deed would look the same
  double rate_before = 0;
  uint64_t applied_then = 0;   // when it was noticed, or healed
  uint64_t trained_least = 0;  // since then: it begins anew with another coordinator
};

class DrillWatch {
 public:
  void add_sample(double t, const std::optional<JobStatus>& status,
                  const std::optional<CoordinatorRecord>& record);
  // What was not seen yet of an earlier fault about the same is not waited for any more: it would
  // be the doing of this one.
  void add_fault(DrillFault fault);
  void heal(uint32_t number, double t);
  // The job is over: what came after its last word is not part of the story.
  void end();
  void say(double t, uint32_t fault, const std::string& what);
  // A fault that was planned and could not be made.
  void leave_out(double t, uint32_t fault, const std::string& why);
  const std::vector<std::string>& left_out() const { return left_out_; }  // why

  const std::vector<DrillSample>& samples() const { return samples_; }
  const std::vector<DrillFault>& faults() const { return faults_; }
  // Since the last call.
  std::vector<DrillEvent> take_new_events();
  const std::vector<DrillEvent>& events() const { return events_; }

  double worst_stall_s() const { return worst_stall_; }            // since the first fault
  double stall_before_s() const { return stall_before_; }          // until then
  uint32_t workers_restarted() const { return restarts_; }         // all
  uint32_t workers_restarted_unasked() const { return unasked_; }  // that no fault was about
  uint64_t applied() const { return samples_.empty() ? 0 : samples_.back().applied; }
  uint64_t trained() const { return samples_.empty() ? 0 : samples_.back().trained; }
  // Unique examples per second while training, before and after the first fault.
  double rate_before() const;
  double rate_during() const;

 private:
  void supersede(const DrillFault& later);
  bool somebody_hurt() const;
  void watch_stall(const DrillSample& now);
  void watch_restarts(const JobStatus& status);
  void watch_training(DrillFault* fault, const DrillSample& now,
                      const std::optional<CoordinatorRecord>& record);
  void watch_fault(DrillFault* fault, const DrillSample& now,
                   const std::optional<JobStatus>& status,
                   const std::optional<CoordinatorRecord>& record);
  bool noticed(const DrillFault& fault, const DrillSample& now,
               const std::optional<JobStatus>& status,
               const std::optional<CoordinatorRecord>& record) const;
  bool back(const DrillFault& fault, const DrillSample& now, const std::optional<JobStatus>& status,
            const std::optional<CoordinatorRecord>& record) const;
  double rate_between(double from, double to) const;

  std::vector<DrillSample> samples_;
  std::vector<DrillFault> faults_;
  std::vector<DrillEvent> events_;
  std::vector<std::string> left_out_;
  size_t told_ = 0;  // events that were taken
  std::map<std::string, uint32_t> worker_pids_;
  std::set<int64_t> victims_;
  double progress_t_ = -1;  // last time that something was applied; -1: not training
  uint64_t progress_ = 0;
  bool blind_ = false;  // nobody answered since then
  double worst_stall_ = 0, stall_before_ = 0;
  uint32_t restarts_ = 0, unasked_ = 0;
};

// Count, median, 99th percentile and maximum of some seconds.
struct Spread {
  size_t count = 0;
  double p50 = 0, p99 = 0, max = 0;
};
Spread spread_of(std::vector<double> values);

}  // namespace flux
