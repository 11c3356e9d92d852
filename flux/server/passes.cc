// Verbs of the coordinator about passes: open with a geometry, report progress, close.
#include <bit>

#include "flux/server/server.h"

namespace flux {

Status Server::open_pass(uint32_t pass, uint64_t geometry) {
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    FLUX_RETURN_IF_ERROR(shard->replica.open_pass(pass, geometry));
  }
  return Status::ok();
}

void Server::close_below(uint32_t pass) {
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    shard->replica.close_below(pass);
  }
}

std::vector<uint32_t> Server::marked_by_all(const BlockId& section, uint32_t blocks) const {
  std::vector<uint32_t> all(blocks, ~0U);
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    BlockId id = section;
    for (id.block = 0; id.block < blocks; ++id.block)
      all[id.block] &= shard->replica.ledger().marked(id);
  }
  return all;
}

std::vector<uint32_t> Server::marked_by_any(const BlockId& section, uint32_t blocks) const {
  std::vector<uint32_t> any(blocks, 0);
  for (const auto& shard : shards_) {
    const std::lock_guard lock(shard->mutex);
    BlockId id = section;
    for (id.block = 0; id.block < blocks; ++id.block)
      any[id.block] |= shard->replica.ledger().marked(id);
  }
  return any;
}

}  // namespace flux
