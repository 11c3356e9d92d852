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
};
constexpr uint32_t kClusterBugs = 12;  // kNone among them

// "ack-before-apply"; the words of `flux sim --bug`.
const char* cluster_bug_name(ClusterBug bug);
std::optional<ClusterBug> find_cluster_bug(std::string_view name);

}  // namespace flux
