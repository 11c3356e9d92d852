#include "flux/base/text.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

namespace flux {
namespace {

// Edit distance with transpositions of neighbours counted as one (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// Edits up to which two words are like each other: few of short words, and never every letter.
size_t likeness_limit(std::string_view word, std::string_view candidate) {
  const size_t longer = std::max(word.size(), candidate.size());
  const size_t edits = longer <= 4 ? 1 : std::max<size_t>(2, word.size() / 3);
  return longer == 0 ? 0 : std::min(edits, longer - 1);
}

}  // namespace

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > 64) return "";
  size_t best = word.size() + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    if (word.size() >= 3 && candidate.starts_with(word)) distance = std::min<size_t>(distance, 1);
    if (distance < best && distance <= likeness_limit(word, candidate)) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string found = nearest_name(word, candidates);
  return found.empty() ? "" : fmt::format(", did you mean '{}'?", found);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string with_commas(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(uint64_t n, std::string_view what) {
  return fmt::format("{} {}{}", with_commas(n), what, n == 1 ? "" : "s");
}

std::string human_bytes(uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string human_seconds(double s) {
  if (s < 0) s = 0;
  if (s < 60) return fmt::format("{:.1f}s", s);
  const auto total = static_cast<uint64_t>(std::llround(s));
  if (total < 3600) return fmt::format("{}m{:02}s", total / 60, total % 60);
  return fmt::format("{}h{:02}m", total / 3600, total / 60 % 60);
}

}  // namespace flux
