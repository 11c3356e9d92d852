// FLUX_CHECK: a broken invariant of our own code. Prints where and why, then aborts, so that
// failover can do its work. Never used on anything that came from a file, a peer or a person.
#pragma once

#include <string>

#include <fmt/core.h>

namespace flux {
[[noreturn]] void check_failed(const char* file, int line, const char* what,
                               const std::string& message);
}  // namespace flux

#define FLUX_CHECK(condition, ...)                                                      \
  do {                                                                                  \
    if (!(condition)) [[unlikely]]                                                      \
      ::flux::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
