// A second parser of vw, from docs/using/formats.md; plain_record.h says what for.
// Pure function.
#pragma once

#include "tests/fuzz/plain_record.h"

namespace flux {

// LABEL, IMPORTANCE, TAG: a tag begins with ', or touches the bar.
inline bool plain_vw_head(const DataOptions& options, const std::string& head, PlainRecord* out) {
  std::vector<std::string> words = words_of(head);
  if (words.empty()) return false;
  const bool touches = head.back() != ' ' && head.back() != '\t';
  if (touches || words.back()[0] == '\'') words.pop_back();
  for (const std::string& word : words)
    if (word[0] == '\'') return false;
  if (words.empty() || words.size() > 2 || !out->set_class(0, words[0])) return false;
  return words.size() == 1 || (options.weights && out->set_weight(words[1]));
}

inline bool plain_vw_dense(const std::string& word, PlainRecord* out) {
  const size_t mark = word.find(':');
  if (mark == std::string::npos) return false;
  const auto index = out->find_dense(word.substr(0, mark));
  return index && out->set_dense(*index, word.substr(mark + 1));
}

inline bool plain_vw_feature(size_t slot, const std::string& word, float scale, PlainRecord* out) {
  const size_t mark = word.rfind(':');
  const bool marked = mark != std::string::npos;
  return out->add_weighted(slot, word.substr(0, mark), marked ? word.substr(mark + 1) : "1", scale);
}

// What stands behind a bar, up to the next one.
inline bool plain_vw_space(const DataOptions& options, const std::string& text, PlainRecord* out) {
  std::vector<std::string> words = words_of(text);
  std::string name;
  if (!text.empty() && text[0] != ' ' && text[0] != '\t') {
    name = words[0];
    words.erase(words.begin());
  }
  float scale = 1;
  if (const size_t mark = name.find(':'); mark != std::string::npos) {
    if (!plain_number(name.substr(mark + 1), &scale)) return false;
    name.resize(mark);
    if (name.empty()) return false;
  }
  if (name == "dense" && !options.dense.empty()) {
    if (scale != 1) return false;
    for (const std::string& word : words)
      if (!plain_vw_dense(word, out)) return false;
    return true;
  }
  if (name.empty() && options.slots.size() != 1) return false;
  const auto slot = name.empty() ? std::optional<size_t>(0) : out->find_slot(name);
  if (!slot) return false;
  for (const std::string& word : words)
    if (!plain_vw_feature(*slot, word, scale, out)) return false;
  return true;
}

// The record as text_of() shows it; none: the line is refused.
inline std::optional<std::string> plain_vw(const DataOptions& options, const std::string& line) {
  const std::vector<std::string> parts = parts_of(without_last_return(line), "|");
  PlainRecord record(options);
  if (parts.size() < 2 || !plain_vw_head(options, parts[0], &record)) return std::nullopt;
  for (size_t i = 1; i < parts.size(); ++i)
    if (!plain_vw_space(options, parts[i], &record)) return std::nullopt;
  return record.text();
}

}  // namespace flux
