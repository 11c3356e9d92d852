// Sentences of a made language with a known truth: which words belong together.
//
// Words are numbered by how frequent they are (weights fall as 1 / rank). The first are common and
// come everywhere; each of the others belongs to one topic. A sentence is about one topic,
// sometimes two, and many of its words are of these; some are common, some come from anywhere. So
// words of one topic have the same neighbours, and a model that learns from neighbours should put
// them together.
// Files of different seeds are different sentences of one language. The bytes depend on the options
// only, never on the number of threads; memory does not grow with the number of lines.
// Failure: Status with the path and the reason; each file is whole or untouched.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "flux/base/status.h"

namespace flux {

struct CorpusGenOptions {
  uint64_t sentences = 0;       // lines to write, at least 1
  uint32_t vocabulary = 20000;  // different words, more than topics and common ones
  uint32_t topics = 400;        // at least 1
  uint64_t seed = 1;            // which sentences
  uint64_t truth_seed = 12345;  // which words belong to which topic
};
constexpr uint32_t kCorpusCommonWords = 100;
constexpr uint32_t kCorpusVocabularyMax = 10'000'000;

struct CorpusGenReport {
  uint64_t sentences = 0;
  uint64_t words = 0;  // written
};

// The word of this number: syllables.
std::string corpus_word(uint32_t number);

// Writes `path`; compressed when it ends in ".gz". `progress` as in feasign_gen.h.
Result<CorpusGenReport> generate_corpus(const CorpusGenOptions& options, const std::string& path,
                                        unsigned threads,
                                        const std::function<void(uint64_t)>& progress);
// Writes the truth: a line "word<TAB>topic" for each word, "word<TAB>-" for a common one.
Status write_corpus_truth(const CorpusGenOptions& options, const std::string& path);

}  // namespace flux
