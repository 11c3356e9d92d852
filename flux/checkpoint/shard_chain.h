// Reading the files of one shard, each checked against what the manifest says of it.
// Private to checkpoint/. Values; not thread-safe. Failure: kCorrupt names file and offset.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flux/base/status.h"
#include "flux/checkpoint/increment_file.h"
#include "flux/checkpoint/manifest.h"

namespace flux {

// Files are added oldest first; the first must be a whole one, the others increments.
class ShardChainReader {
 public:
  Status add(const std::string& path, std::string_view content, const ChainLink& named);
  ShardImage finish();

 private:
  std::optional<ShardImage> whole_;
  std::optional<ChainMerger> merger_;  // from the first increment on
};

// The protocol state in one file.
Result<ShardReplica> state_in(const std::string& path, std::string_view content,
                              const ChainLink& named, bool increment);

}  // namespace flux
