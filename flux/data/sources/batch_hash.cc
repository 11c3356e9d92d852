#include "flux/data/sources/batch_hash.h"

#include <algorithm>

#include "flux/data/lines.h"

namespace flux {

uint64_t join_batch_hashes(std::span<const uint64_t> batches) {
  uint64_t hash = 0;
  for (const uint64_t batch : batches) hash = hash_pair(hash, batch);
  return std::max<uint64_t>(hash, 1);
}

uint64_t hash_batches(std::string_view text, uint32_t batch_size) {
  std::vector<uint64_t> hashes;
  while (!text.empty()) {
    const size_t newline = find_newline(text.data(), text.size(), batch_size - 1);
    const std::string_view batch = text.substr(0, newline + 1);
    hashes.push_back(hash_bytes(batch));
    text.remove_prefix(batch.size());
  }
  return join_batch_hashes(hashes);
}

void BatchHasher::add(std::string_view text) {
  batch_.update(text.data(), text.size());
  empty_ = empty_ && text.empty();
}

void BatchHasher::end_batch() {
  hashes_.push_back(batch_.digest());
  batch_.reset();
  empty_ = true;
}

const std::vector<uint64_t>& BatchHasher::finish() {
  if (!empty_) end_batch();
  return hashes_;
}

}  // namespace flux
