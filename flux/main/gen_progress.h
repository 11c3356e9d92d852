// What commands that make data share: how far they are, and how many threads they take.
// One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "flux/base/text.h"

namespace flux {

// 0: one per core.
inline unsigned threads_of(unsigned wanted) {
  return wanted == 0 ? std::max(1U, std::thread::hardware_concurrency()) : wanted;
}

// Shows how far it is, on a terminal.
class GenProgress {
 public:
  explicit GenProgress(uint64_t examples) : examples_(examples) {}
  ~GenProgress() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }
  GenProgress(const GenProgress&) = delete;
  GenProgress& operator=(const GenProgress&) = delete;
  std::function<void(uint64_t)> show() const {
    return [this](uint64_t done) {
      if (terminal_)
        fmt::print(stderr, "\r{} of {} examples", with_commas(done), with_commas(examples_));
    };
  }

 private:
  const uint64_t examples_;
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
};

}  // namespace flux
