// ClusterBug: mistakes that the cluster simulator can plant, to show that its audit finds them.
// Each lives in a wrapper around a port, service or disk of the simulator, never in production
// code.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace flux {

enum class ClusterBug : uint8_t {
  kNone,
  kAckBeforeApply,       // a server answers "applied" and applies later, or dies before it does
  kNoIncarnationCheck,   // a write of a former life of the job is taken
  kNoEpochCheck,         // a write under an older epoch is taken
  kEmptyShardsUnmarked,  // shards without rows of a batch are answered for, not marked
  kDuplicatesApplied,    // a batch that the ledger has is applied again under another identity
  kLeaseLost,            // a block that came back is never leased again
  kHintsTrusted,         // a section ends without asking the shards, on what workers said
  kManifestUnaudited,    // a pass is closed though a shard's file lacks a batch
  kSnapshotTorn,         // rows and ledger of a saved shard are of different moments
  kSyncNotAwaited,       // a sync step is poured before every member has come
  kZombieCommit,         // a coordinator commits though another has claimed a later term
  kEarlyReplicated,      // a receipt is confirmed before the backup has anything
  kVoidConfirmed,        // a receipt that an epoch change made void is confirmed
  kFencedServes,         // a primary that was replaced goes on answering
  kTermReused,           // a coordinator that lost its terms begins with an old one
  kMarksOfAny,           // what some shards have is taken for what all have
  kStaleAnswer,          // a worker counts an answer that an older epoch earned
  kForgedAnswer,         // a worker takes a batch for applied that it never pushed
  kPrunedEarly,          // ledgers forget a pass before its manifest is committed
  kLedgerNotCopied,      // a copied shard has the rows but not the ledger
  kUnsyncedFiles,        // a manifest names files that were never made durable
  kSkippedAsApplied,     // a batch that is set aside counts as applied
  kRefusalsLost,         // nobody counts that a worker could not train a batch
  kIncarnationInKey,     // marks of a former life of the job are not known in this one
  kSnapshotByOp,         // a saved shard is named by its operation alone: an older one is taken
  kEmptyPromoted,        // a replica that has nothing becomes the owner, though a checkpoint has it
  kUnkeyedReservoir,     // a batch that comes twice while its sync step waits counts twice
  kDuplicatesIgnored,    // a sync step waits for a batch that the shard has already
  kUnsealed,             // a shard that was sealed for a move goes on under the same epoch
  kLocalSkip,            // a worker leaves out records that it cannot train, and says nothing
  kListedAnew,           // a worker cuts the data as it lies there now, not as the pass was opened
  kRowsDiffer,           // some servers make other rows of the same operations
};
constexpr uint32_t kClusterBugs = 33;  // kNone among them

// "ack-before-apply"; the words of `flux sim --bug`.
const char* cluster_bug_name(ClusterBug bug);
std::optional<ClusterBug> find_cluster_bug(std::string_view name);

}  // namespace flux
