// Runs independent pieces of work on a few threads and joins them: scans, files of shards.
// Threads: its own, joined before it returns. Failure: the first Status of any piece.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "flux/base/status.h"

namespace flux {

// Calls work(i) for i in [0, count) on up to `threads` threads (this one included). Returns the
// failure of the lowest i that failed, so that the message does not depend on timing.
template <typename Work>
Status parallel_for(size_t count, unsigned threads, Work&& work) {
  std::vector<Status> failures(count);
  std::atomic<size_t> next = 0;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) failures[i] = work(i);
  };
  const size_t helpers = std::min<size_t>(std::max(threads, 1U), count);
  std::vector<std::thread> pool;
  for (size_t i = 1; i < helpers; ++i) pool.emplace_back(loop);
  loop();
  for (std::thread& thread : pool) thread.join();
  for (Status& failure : failures)
    if (!failure.is_ok()) return std::move(failure);
  return Status::ok();
}

}  // namespace flux
