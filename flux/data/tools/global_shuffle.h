// Global shuffle: every record of some data once, in an order drawn from a seed, as one block file.
//
// Each record goes to a bucket that is drawn for it, and each bucket is then shuffled by itself, so
// that every order is equally likely and no more than a bucket is in memory. How many there are is
// told from the first records; a bucket that turns out too large is split in the same way. The
// order depends on the records, the seed and the memory, not on threads or the machine.
// Memory: that of the options, and the blocks of the data that are being parsed.
// Threads: blocks are parsed by those of the data, all else is done by the calling one.
// Failure: as Dataset and BlockFileWriter. Nothing is left behind but a complete file.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "flux/data/tools/whole_data.h"

namespace flux {

struct ShuffleOptions {
  uint64_t seed = 1;
  uint64_t memory_bytes = 256ULL << 20;  // for records; about
};

// Buckets lie beside `out` while it is made. kCancelled soon after *stop (if given) turns true.
Status shuffle_to_blocks(const WholeData& data, const std::string& out,
                         const ShuffleOptions& options, const std::atomic<bool>* stop);

}  // namespace flux
