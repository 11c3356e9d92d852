#include "flux/testing/cluster_bug.h"

namespace flux {

const char* cluster_bug_name(ClusterBug bug) {
  switch (bug) {
    case ClusterBug::kNone:
      return "none";
    case ClusterBug::kAckBeforeApply:
      return "ack-before-apply";
    case ClusterBug::kNoIncarnationCheck:
      return "no-incarnation-check";
    case ClusterBug::kNoEpochCheck:
      return "no-epoch-check";
    case ClusterBug::kEmptyShardsUnmarked:
      return "empty-shards-unmarked";
    case ClusterBug::kDuplicatesApplied:
      return "duplicates-applied";
    case ClusterBug::kLeaseLost:
      return "lease-lost";
    case ClusterBug::kHintsTrusted:
      return "hints-trusted";
    case ClusterBug::kManifestUnaudited:
      return "manifest-unaudited";
    case ClusterBug::kSnapshotTorn:
      return "snapshot-torn";
    case ClusterBug::kSyncNotAwaited:
      return "sync-not-awaited";
    case ClusterBug::kZombieCommit:
      return "zombie-commit";
    case ClusterBug::kEarlyReplicated:
      return "early-replicated";
    case ClusterBug::kVoidConfirmed:
      return "void-confirmed";
    case ClusterBug::kFencedServes:
      return "fenced-serves";
    case ClusterBug::kTermReused:
      return "term-reused";
    case ClusterBug::kMarksOfAny:
      return "marks-of-any";
    case ClusterBug::kStaleAnswer:
      return "stale-answer";
    case ClusterBug::kForgedAnswer:
      return "forged-answer";
    case ClusterBug::kPrunedEarly:
      return "pruned-early";
    case ClusterBug::kLedgerNotCopied:
      return "ledger-not-copied";
    case ClusterBug::kUnsyncedFiles:
      return "unsynced-files";
    case ClusterBug::kSkippedAsApplied:
      return "skipped-as-applied";
    case ClusterBug::kRefusalsLost:
      return "refusals-lost";
    case ClusterBug::kIncarnationInKey:
      return "incarnation-in-key";
    case ClusterBug::kSnapshotByOp:
      return "snapshot-by-op";
    case ClusterBug::kEmptyPromoted:
      return "empty-promoted";
    case ClusterBug::kUnkeyedReservoir:
      return "unkeyed-reservoir";
    case ClusterBug::kDuplicatesIgnored:
      return "duplicates-ignored";
    case ClusterBug::kUnsealed:
      return "unsealed";
    case ClusterBug::kLocalSkip:
      return "local-skip";
    case ClusterBug::kListedAnew:
      return "listed-anew";
    case ClusterBug::kRowsDiffer:
      return "rows-differ";
  }
  return "unknown";
}

std::optional<ClusterBug> find_cluster_bug(std::string_view name) {
  for (uint32_t i = 0; i < kClusterBugs; ++i)
    if (name == cluster_bug_name(static_cast<ClusterBug>(i))) return static_cast<ClusterBug>(i);
  return std::nullopt;
}

}  // namespace flux
