#include "flux/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace flux {

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

StreamHasher::StreamHasher() : state_(XXH3_createState()) { reset(); }
StreamHasher::~StreamHasher() {
  XXH3_freeState(static_cast<XXH3_state_t*>(state_));
}
void StreamHasher::reset() { XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_)); }
void StreamHasher::update(const void* data, size_t size) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), data, size);
}
uint64_t StreamHasher::digest() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_));
}

}  // namespace flux
