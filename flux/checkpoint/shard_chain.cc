#include "flux/checkpoint/shard_chain.h"

#include "flux/base/hash.h"

namespace flux {
namespace {

// After decoding, which finds the offset of a bad byte.
Status check_named(const std::string& path, std::string_view content, const ChainLink& named,
                   const ShardReplica& replica) {
  if (hash_bytes(content) != named.file.hash || replica.op() != named.op ||
      replica.stream_hash() != named.stream_hash)
    return error(Code::kCorrupt, "{}: not the file that the manifest names", path);
  return Status::ok();
}

}  // namespace

Status ShardChainReader::add(const std::string& path, std::string_view content,
                             const ChainLink& named) {
  if (!whole_) {
    FLUX_ASSIGN_OR_RETURN(whole_, decode_shard(path, content));
    return check_named(path, content, named, whole_->replica);
  }
  FLUX_ASSIGN_OR_RETURN(const ShardIncrement increment, decode_increment(path, content));
  FLUX_RETURN_IF_ERROR(check_named(path, content, named, increment.replica));
  if (!merger_) merger_.emplace(std::move(*whole_));
  return merger_->add(path, increment);
}

ShardImage ShardChainReader::finish() {
  return merger_ ? merger_->finish() : std::move(*whole_);
}

Result<ShardReplica> state_in(const std::string& path, std::string_view content,
                              const ChainLink& named, bool increment) {
  ShardReplica replica;
  if (increment) {
    FLUX_ASSIGN_OR_RETURN(ShardIncrement changes, decode_increment(path, content));
    replica = std::move(changes.replica);
  } else {
    FLUX_ASSIGN_OR_RETURN(ShardImage image, decode_shard(path, content));
    replica = std::move(image.replica);
  }
  FLUX_RETURN_IF_ERROR(check_named(path, content, named, replica));
  return replica;
}

}  // namespace flux
