// Small helpers for messages that people read: suggestions, lists, numbers and sizes.
// Pure functions without failure; safe from every thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flux {

// The candidate nearest to `word` by edit distance, or "" when none is near enough to suggest.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);
// ", did you mean 'x'?" or "".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
std::string with_commas(uint64_t n);                     // 1234567 -> "1,234,567"
std::string counted(uint64_t n, std::string_view what);  // "1 table", "2,000 tables"
std::string human_bytes(uint64_t bytes);                 // 1536 -> "1.5 KiB"
std::string human_seconds(double s);                     // 75 -> "1m15s"

}  // namespace flux
