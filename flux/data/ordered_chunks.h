// write_chunks(): many threads make the pieces of a file, which are written in order.
//
// Each thread makes a chunk, waits for its turn and appends it, so there are never more chunks in
// memory than threads, and the bytes do not depend on how many threads there are.
// Failure: the first Status of any piece.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "flux/base/status.h"
#include "flux/data/piecewise_file.h"

namespace flux {

// One thread's maker: the text of a chunk, valid until its next call.
using MakeChunk = std::function<std::string_view(uint64_t chunk)>;

// Threads worth having for so many chunks.
size_t chunk_threads(uint64_t chunks, unsigned wanted);
// A thread for each maker, the caller's for the first. `written`, if set, is told of each chunk, in
// order, by one thread at a time.
Status write_chunks(PiecewiseFile* file, uint64_t chunks, const std::vector<MakeChunk>& makers,
                    const std::function<void(uint64_t chunk)>& written);

}  // namespace flux
