// Second parsers of libsvm and libffm, from docs/using/formats.md; plain_record.h says what for.
// Pure functions.
#pragma once

#include "tests/fuzz/plain_record.h"

namespace flux {

// INDEX or INDEX:VALUE.
inline bool plain_indexed(size_t slot, const std::string& text, PlainRecord* out) {
  const size_t mark = text.find(':');
  if (mark == std::string::npos) return out->add_weighted(slot, text, "1", 1);
  return out->add_weighted(slot, text.substr(0, mark), text.substr(mark + 1), 1);
}

inline bool plain_libsvm_head(const DataOptions& options, const std::string& word,
                              PlainRecord* out) {
  const size_t mark = word.find(':');
  if (!out->set_class(0, word.substr(0, mark))) return false;
  if (mark == std::string::npos) return true;
  return options.format == "libsvm" && options.weights && out->set_weight(word.substr(mark + 1));
}

inline bool plain_libsvm_feature(const std::string& word, PlainRecord* out) {
  if (!word.starts_with("qid:")) return plain_indexed(0, word, out);
  return word.size() > 4 && out->set_session(word.substr(4));
}

// FIELD:INDEX or FIELD:INDEX:VALUE; the field is the number of the slot.
inline bool plain_libffm_feature(const DataOptions& options, const std::string& word,
                                 PlainRecord* out) {
  const size_t mark = word.find(':');
  uint64_t field = 0;
  return mark != std::string::npos && plain_whole(word.substr(0, mark), &field) &&
         field < options.slots.size() && plain_indexed(field, word.substr(mark + 1), out);
}

// The record as text_of() shows it; none: the line is refused. `options` say which format it is.
inline std::optional<std::string> plain_libsvm(const DataOptions& options,
                                               const std::string& line) {
  PlainRecord record(options);
  const std::vector<std::string> words = words_of(without_last_return(line));
  if (words.empty() || words[0][0] == '#' || !plain_libsvm_head(options, words[0], &record))
    return std::nullopt;
  for (size_t i = 1; i < words.size() && words[i][0] != '#'; ++i)
    if (!(options.format == "libffm" ? plain_libffm_feature(options, words[i], &record)
                                     : plain_libsvm_feature(words[i], &record)))
      return std::nullopt;
  return record.text();
}

}  // namespace flux
