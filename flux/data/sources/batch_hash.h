// Hashes of text by batches of lines, so that the hash of a block of any number of whole batches is
// known from those of its batches: a scan has to read a text before it can say where blocks begin.
//
// Pure function, and a class for one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "flux/base/hash.h"

namespace flux {

// Of the text of whole batches of `batch_size` lines; the last may be shorter. Never 0.
uint64_t hash_batches(std::string_view text, uint32_t batch_size);
// The same from the hashes of the batches.
uint64_t join_batch_hashes(std::span<const uint64_t> batches);

// Text that comes in pieces, cut into batches by the caller.
class BatchHasher {
 public:
  void add(std::string_view text);
  void end_batch();
  // Ends the last batch, if it has any text.
  const std::vector<uint64_t>& finish();

 private:
  StreamHasher batch_;
  bool empty_ = true;
  std::vector<uint64_t> hashes_;
};

}  // namespace flux
