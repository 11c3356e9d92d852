// DrillPlan: which faults a drill makes, and when; all of it follows from words and a seed.
//
// Each --kill, --pause, ... gives one FaultSpec; the plan takes them in turn, one every `every`.
// What is left open ("some worker") is settled by a draw that belongs to the fault's place in the
// plan, so the same seed gives the same plan whatever the cluster does meanwhile.
// Threads: values. Failure: parsing says kInvalid with what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flux/base/executor.h"
#include "flux/base/kill_point.h"
#include "flux/base/random.h"
#include "flux/base/status.h"

namespace flux {

enum class FaultKind : uint8_t {
  kKill,       // SIGKILL
  kKillAll,    // every process of the job at once; the drill starts it again
  kPause,      // SIGSTOP, SIGCONT later
  kOom,        // its memory is taken away
  kPartition,  // messages between two vanish for a while
  kDrain,      // asked to leave
  kScale,      // `flux scale`
  kKillPoint,  // a server dies at a named place of its code
};

// "worker:1"; without a number any of them; "any": any process of the job.
struct RoleChoice {
  std::string role;  // coordinator, server, worker, any
  std::optional<uint32_t> index;
  std::string text() const;
};

struct FaultSpec {
  FaultKind kind = FaultKind::kKill;
  std::vector<RoleChoice> who;    // all at once; of a partition its two ends
  bool both_ways = true;          // of a partition; else only from who[0] to who[1]
  bool lose_log = false;          // of a coordinator's kill: its log is deleted too
  std::string scale;              // "workers" or "servers"
  std::vector<uint32_t> sizes;    // of scale: taken in turn, or drawn from if `draw_size`
  bool draw_size = false;         //
  std::vector<KillPoint> points;  // of kKillPoint: taken in turn
  std::string label() const;      // "kill worker", for tables: without numbers
  std::string text() const;       // "kill worker:1"
};

struct PlannedFault {
  uint32_t number = 0;  // from 1
  TimeNs at_ns = 0;     // since the begin of the drill
  FaultSpec spec;
  uint64_t draw = 0;
  KillOrder order;    // of kKillPoint
  uint32_t size = 0;  // of kScale
};

// Each takes what follows its flag.
Result<FaultSpec> parse_kill(const std::string& text);       // worker, server:0+server:1, all
Result<FaultSpec> parse_pause(const std::string& text);      // worker:0
Result<FaultSpec> parse_oom(const std::string& text);        // worker:0
Result<FaultSpec> parse_drain(const std::string& text);      // worker:0
Result<FaultSpec> parse_partition(const std::string& text);  // worker:0-server:1, a>b
Result<FaultSpec> parse_scale(const std::string& text);      // workers=1..8, servers=2,4,3
Result<FaultSpec> parse_at(const std::string& text);         // after_apply,seal or all
// "200ms", "30s", "5m", "1h", "30" (seconds).
Result<TimeNs> parse_duration(const std::string& text);
// The same, of this flag, which a failure names.
Result<TimeNs> parse_duration(const std::string& flag, const std::string& text);

struct DrillPlanOptions {
  std::vector<FaultSpec> specs;
  TimeNs every_ns = 30 * kSecond;
  double jitter = 0;       // each moment is earlier or later by up to this share of `every`
  TimeNs for_ns = 0;       // no fault after this; 0: no end
  uint32_t times = 0;      // so many faults; 0: no end
  uint32_t pass_max = 20;  // kill points: the pass to die at is drawn from 1 to this
  uint32_t workers = 0, servers = 0;  // that there are at first; 0: not known
  uint64_t seed = 1;
};

class DrillPlan {
 public:
  explicit DrillPlan(DrillPlanOptions options);
  // The next fault, if there is to be one.
  std::optional<PlannedFault> next();

 private:
  uint32_t next_size(const FaultSpec& spec, uint32_t turn, uint64_t drawn);

  const DrillPlanOptions options_;
  Random random_;
  uint32_t number_ = 0;
  uint32_t workers_, servers_;  // as the plan has them by now; 0: not known
};

// When planned faults are due: at their place in the plan, but after one that came late, or waited
// and was left out, as far from it as the plan has them apart. Small delays are caught up with.
class FaultClock {
 public:
  TimeNs due(const PlannedFault& fault) const;
  // It was made, or left out, then.
  void passed(const PlannedFault& fault, TimeNs at);

 private:
  TimeNs planned_ = 0, at_ = 0;  // of the latest
};

}  // namespace flux
