// Kill points: named places in the code where a test may end the process, as kill -9 would.
//
// `kill_point(KillPoint::kAfterApply)` costs one relaxed load of a pointer that is null unless
// somebody armed a point (`flux server --die-at after_apply:3`, or `flux drill --at`). The N-th
// pass of the armed point, counted from the moment it was armed and over all threads, sends this
// process SIGKILL: nothing is flushed, no destructor runs, exactly what a crash leaves behind is
// left. A new point is one line in the enum and one in the table of kill_point.cc; where it stands
// is up to the code that it is about. Placing the same point in several functions is fine. Threads:
// all functions from any thread. Process-wide by nature, as the signal is. Failure: only of
// parsing, kInvalid with the names that there are.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/status.h"

namespace flux {

enum class KillPoint : uint8_t {
  // A push at the shard that leads.
  kBeforeApply,    // decoded and fenced, no row touched
  kAfterApply,     // rows changed, ledger not
  kAfterCommit,    // rows and ledger changed, nobody told
  kBeforeForward,  // before the record goes to the backup
  kAfterForward,   // it is on its way, not acknowledged
  kBeforeReply,    // before the worker is told "applied"
  kAfterReply,
  kBeforeConfirm,  // before it is told "replicated"
  // The same record at the backup.
  kBackupBeforeApply,
  kBackupAfterApply,
  kBackupBeforeAck,
  // A shard on the move: its source, then its destination.
  kCopyBegin,
  kCopyMid,
  kCopyEnd,
  kInstallBegin,
  kInstallMid,
  kInstallEnd,
  kSeal,     // the old owner stops taking pushes
  kPromote,  // the new owner begins to
  // Checkpoints.
  kBeforeSave,
  kMidSave,
  kAfterSave,
  // Words of the coordinator.
  kOpenPass,
  kCloseBelow,
  kMark,
  kAssign,
};

// All names, in the order of the enum: "before_apply", ...
const std::vector<std::string>& kill_point_names();
const char* kill_point_name(KillPoint point);

struct KillOrder {
  KillPoint point = KillPoint::kBeforeApply;
  uint32_t pass = 1;  // dies at this pass, 1: the next one
};

// "after_apply:3" or "after_apply".
Result<KillOrder> parse_kill_order(std::string_view text);
// Replaces whatever was armed before.
void arm_kill_point(const KillOrder& order);
void disarm_kill_points();

namespace kill_point_detail {
struct Armed;
extern std::atomic<Armed*> armed;
void pass(KillPoint point);
}  // namespace kill_point_detail

inline void kill_point(KillPoint point) {
  if (kill_point_detail::armed.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    kill_point_detail::pass(point);
}

}  // namespace flux
