#include "flux/job/problems.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "flux/job/utf8.h"

namespace flux {
namespace {

constexpr size_t kKeptMax = 1000;      // a bound; kShownMax are shown
constexpr size_t kExcerptBefore = 60;  // bytes shown before the caret in a long line
constexpr size_t kExcerptMax = 100;    // bytes shown of a long line

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

// The largest position <= at where a character starts.
size_t align_down(std::string_view text, size_t at) {
  at = std::min(at, text.size());
  while (at > 0 && at < text.size() && is_continuation(text[at])) --at;
  return at;
}

// Fit for a terminal: bytes that are no UTF-8 and control characters become '?'.
std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const bool bad = length == 0 || is_control(text[0]) || text[0] == '\n' || text[0] == '\r';
    out += bad ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return out;
}

}  // namespace

std::string shorten(std::string_view text) {
  constexpr size_t kMax = 60;
  const std::string out = printable(text.substr(0, align_down(text, kMax)));
  return text.size() > kMax ? out + "..." : out;
}

Problems::Problems(std::string path, std::string_view text) : path_(std::move(path)) {
  while (true) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines_.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

void Problems::add(const Origin& origin, std::string message, std::string hint) {
  if (problems_.size() < kKeptMax) {
    problems_.push_back({origin, std::move(message), std::move(hint)});
  }
}

std::string_view Problems::line(uint32_t number) const {
  return number >= 1 && number <= lines_.size() ? lines_[number - 1] : std::string_view();
}

std::string Problems::place(const Origin& origin) const {
  if (origin.override_index >= 0) {
    return override_labels_[static_cast<size_t>(origin.override_index)];
  }
  const std::string_view before = line(origin.line).substr(0, origin.column - 1);
  return fmt::format("{}:{}:{}", path_, origin.line, characters(before) + 1);
}

std::string Problems::excerpt(const Origin& origin) const {
  const std::string_view whole = line(origin.line);
  const size_t column = std::min<size_t>(origin.column - 1, whole.size());
  size_t begin = 0;
  if (whole.size() > kExcerptMax && column > kExcerptBefore) {
    begin = align_down(whole, column - kExcerptBefore);
  }
  const size_t end = align_down(whole, begin + kExcerptMax);
  const std::string_view shown = whole.substr(begin, end - begin);
  std::string padding = begin > 0 ? "   " : "";
  for (const char c : whole.substr(begin, column - begin)) {
    if (!is_continuation(c)) padding += c == '\t' ? '\t' : ' ';
  }
  const std::string_view marked =
      whole.substr(column, std::min<size_t>(origin.length, end - column));
  const std::string carets(std::max<size_t>(1, characters(marked)), '^');
  return fmt::format("    {} | {}{}{}\n    {:{}} | {}{}\n", origin.line, begin > 0 ? "..." : "",
                     printable(shown), end < whole.size() ? "..." : "", "",
                     std::to_string(origin.line).size(), padding, carets);
}

std::string Problems::block(const Problem& problem) const {
  std::string out = fmt::format("{}: {}\n", place(problem.origin), problem.message);
  if (problem.origin.override_index < 0) out += excerpt(problem.origin);
  if (!problem.hint.empty()) out += fmt::format("    {}\n", problem.hint);
  return out;
}

Status Problems::to_status() const {
  if (problems_.empty()) return Status::ok();
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tuple(a.origin.override_index, a.origin.line, a.origin.column) <
           std::tuple(b.origin.override_index, b.origin.line, b.origin.column);
  });
  std::string out;
  std::set<std::string> seen;
  for (const Problem& problem : sorted) {
    std::string text = block(problem);
    if (!seen.insert(text).second) continue;
    if (seen.size() <= kShownMax) out += text;
  }
  if (seen.size() > kShownMax) {
    out += fmt::format("and {}{} more\n", problems_.size() == kKeptMax ? "at least " : "",
                       seen.size() - kShownMax);
  }
  out.pop_back();
  return Status(Code::kInvalid, std::move(out));
}

}  // namespace flux
