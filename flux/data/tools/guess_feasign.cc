// guess_feasign(): names by the words, kinds by what stands behind them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "flux/data/decimal.h"
#include "flux/data/tools/guess_text.h"

namespace flux {
namespace {

struct Seen {
  uint64_t count = 0, fractions = 0;  // all of them, and those that are no whole numbers
  bool many = false;                  // several in one line
  bool values = false;                // KEY:VALUE
  uint64_t line = 0;                  // where it was last

  bool whole() const { return are_mistakes(fractions, count); }
};

// Collects the names of feasign lines; false: a line is none.
class FeasignGuess {
 public:
  bool add(std::string_view line) {
    ++lines_;
    bool first = true;
    while (!line.empty()) {
      const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
      const std::string_view word = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
      if (word.empty()) continue;
      if (!(first ? add_labels(word) : add_word(word))) return false;
      first = false;
    }
    return !first;
  }
  bool has_features() const { return !order_.empty(); }
  DataOptions options() const {
    DataOptions out;
    out.format = "feasign";
    out.weights = weights_;
    if (groups_) out.group = "sid";
    out.labels.clear();
    for (size_t l = 0; l < labels_; ++l)
      out.labels.push_back(labels_ == 1 ? "label" : fmt::format("label{}", l + 1));
    for (const std::string& name : order_) {
      const Seen& seen = names_.at(name);
      if (!seen.whole() && !seen.many) {
        out.dense.push_back(name);
        continue;
      }
      out.slots.push_back({name, ""});
      out.slots.back().values = seen.values;
    }
    return out;
  }

 private:
  static bool number(std::string_view text) {
    float value = 0;
    return !text.empty() && parse_decimal(text.data(), text.data() + text.size(), &value);
  }
  bool add_labels(std::string_view word) {
    size_t count = 1;
    for (size_t at = word.find(','); at != std::string_view::npos; at = word.find(','), ++count) {
      if (!number(word.substr(0, at))) return false;
      word.remove_prefix(at + 1);
    }
    if (labels_ == 0) labels_ = count;
    return number(word) && labels_ == count;
  }
  bool add_word(std::string_view word) {
    const size_t mark = word.find_first_of(":=");
    if (mark == std::string_view::npos || mark == 0) return false;
    const std::string_view name = word.substr(0, mark);
    std::string_view value = word.substr(mark + 1);
    if (word[mark] == '=') {
      weights_ = weights_ || name == "w";
      groups_ = groups_ || name == "sid";
      return name == "w" || name == "id" || name == "sid";
    }
    const size_t second = value.find(':');
    if (second != std::string_view::npos) {
      if (!number(value.substr(second + 1))) return false;
      value = value.substr(0, second);
    }
    if (!number(value)) return false;
    const auto [at, is_new] = names_.try_emplace(std::string(name));
    if (is_new) order_.emplace_back(name);
    Seen& seen = at->second;
    ++seen.count;
    if (value.find_first_not_of("0123456789") != std::string_view::npos) ++seen.fractions;
    seen.many = seen.many || seen.line == lines_;
    seen.values = seen.values || second != std::string_view::npos;
    seen.line = lines_;
    return true;
  }

  uint64_t lines_ = 0;
  size_t labels_ = 0;
  bool weights_ = false, groups_ = false;
  std::map<std::string, Seen> names_;
  std::vector<std::string> order_;
};

}  // namespace

std::optional<DataOptions> guess_feasign(Lines lines) {
  FeasignGuess guess;
  for (const std::string& line : lines)
    if (!guess.add(line)) return std::nullopt;
  if (!guess.has_features()) return std::nullopt;  // labels alone: numbers between commas
  return guess.options();
}

}  // namespace flux
