// A second parser of feasign, from docs/using/feasign.md; plain_record.h says what for.
// Pure function.
#pragma once

#include "tests/fuzz/plain_record.h"

namespace flux {

inline bool plain_feasign_labels(const DataOptions& options, const std::string& word,
                                 PlainRecord* out) {
  const std::vector<std::string> labels = parts_of(word, ",");
  if (labels.size() != options.labels.size()) return false;
  for (size_t i = 0; i < labels.size(); ++i)
    if (!out->set_label(i, labels[i])) return false;
  return true;
}

inline bool plain_feasign_note(const DataOptions& options, const std::string& name,
                               const std::string& value, PlainRecord* out) {
  if (name == "w") return options.weights && out->set_weight(value);
  if (name == "sid") return out->set_session(value);
  return name == "id" && out->set_name();
}

inline bool plain_feasign_word(const DataOptions& options, const std::string& word,
                               PlainRecord* out) {
  const size_t mark = word.find_first_of(":=");
  if (mark == std::string::npos) return false;
  const std::string name = word.substr(0, mark), value = word.substr(mark + 1);
  if (word[mark] == '=') return plain_feasign_note(options, name, value, out);
  if (const auto index = out->find_dense(name)) return out->set_dense(*index, value);
  const auto slot = out->find_slot(name);
  return slot && out->add_item(*slot, value);
}

// The record as text_of() shows it; none: the line is refused.
inline std::optional<std::string> plain_feasign(const DataOptions& options,
                                                const std::string& line) {
  PlainRecord record(options);
  const std::vector<std::string> words = words_of(without_last_return(line));
  if (words.empty() || !plain_feasign_labels(options, words[0], &record)) return std::nullopt;
  for (size_t i = 1; i < words.size(); ++i)
    if (!plain_feasign_word(options, words[i], &record)) return std::nullopt;
  return record.text();
}

}  // namespace flux
