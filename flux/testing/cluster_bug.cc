#include "flux/testing/cluster_bug.h"

#include <iterator>

namespace flux {
namespace {

// In the order of the enumeration.
constexpr const char* kNames[] = {
    "none",
    "ack-before-apply",
    "no-incarnation-check",
    "no-epoch-check",
    "empty-shards-unmarked",
    "duplicates-applied",
    "lease-lost",
    "hints-trusted",
    "manifest-unaudited",
    "snapshot-torn",
    "sync-not-awaited",
    "zombie-commit",
    "early-replicated",
    "void-confirmed",
    "fenced-serves",
    "term-reused",
    "marks-of-any",
    "stale-answer",
    "forged-answer",
    "pruned-early",
    "ledger-not-copied",
    "unsynced-files",
    "skipped-as-applied",
    "refusals-lost",
    "incarnation-in-key",
    "snapshot-by-op",
    "empty-promoted",
    "unkeyed-reservoir",
    "duplicates-ignored",
    "unsealed",
    "local-skip",
    "listed-anew",
    "rows-differ",
};
static_assert(std::size(kNames) == kClusterBugs);

}  // namespace

const char* cluster_bug_name(ClusterBug bug) {
  return kNames[static_cast<size_t>(bug)];
}

std::optional<ClusterBug> find_cluster_bug(std::string_view name) {
  for (uint32_t i = 0; i < kClusterBugs; ++i)
    if (name == cluster_bug_name(static_cast<ClusterBug>(i))) return static_cast<ClusterBug>(i);
  return std::nullopt;
}

}  // namespace flux
