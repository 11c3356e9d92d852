// Vocabulary: the words of a corpus and how often each comes, as `flux data vocab` counts them.
//
// The file, plain or packed, has a line "word count" for each word; words are UTF-8. What stands
// for a word in tables is word_key().
// Threads: a plain value. Failure: kInvalid with "path:line:column: what" for a bad line,
// kNotFound, kIo or kCorrupt for files.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flux/base/hash.h"
#include "flux/base/status.h"

namespace flux {

inline uint64_t word_key(std::string_view word) {
  return hash_bytes(word);
}

// What parts words: all else belongs to them.
inline bool parts_words(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

constexpr uint64_t kVocabularyBytesMax = 1ULL << 32;  // of its text

struct Vocabulary {
  std::vector<std::string> words;
  std::vector<uint64_t> counts;  // of each, at least 1
  uint64_t total = 0;            // their sum

  // Of at most `bytes_max` of text, which also bounds what a packed file becomes in memory.
  static Result<Vocabulary> load(const std::string& path, uint64_t bytes_max = kVocabularyBytesMax);
  // The file's text. It begins with a byte order mark where it would be read as something else
  // without: its first word begins with such a mark, or as a packed file does.
  std::string to_text() const;
};

// Counts the words of text files (plain or packed), files by several threads at once; the most
// frequent comes first, equal ones by their letters. Words that come less than `min_count` times
// are left out; kInvalid if nothing is left.
Result<Vocabulary> count_words(std::span<const std::string> files, uint64_t min_count,
                               unsigned threads);

}  // namespace flux
