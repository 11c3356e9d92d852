#include "flux/data/corpus_gen.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "flux/base/hash.h"
#include "flux/base/text.h"
#include "flux/data/alias_table.h"
#include "flux/data/ordered_chunks.h"
#include "flux/storage/atomic_file.h"

namespace flux {
namespace {

// All of these are part of the format: the same options give the same bytes for ever.
constexpr uint64_t kChunk = 10'000;  // sentences drawn from one seed
constexpr uint64_t kWordsMin = 8, kWordsSpread = 17;
constexpr double kTwoTopics = 0.3;    // of the sentences
constexpr double kTopicWords = 0.45;  // of the words
constexpr double kCommonWords = 0.25;

uint32_t topic_of(const CorpusGenOptions& options, uint32_t word) {
  // The first of them make sure that no topic is empty.
  const uint32_t number = word - kCorpusCommonWords;
  if (number < options.topics) return number;
  return static_cast<uint32_t>(hash_pair(options.truth_seed, word) % options.topics);
}

Status check_options(const CorpusGenOptions& options, const std::string& path) {
  if (options.sentences == 0)
    return invalid("{}: 0 sentences were asked for; ask for at least 1", path);
  const uint64_t least = uint64_t{kCorpusCommonWords} + options.topics;
  if (options.topics >= 1 && options.vocabulary >= least &&
      options.vocabulary <= kCorpusVocabularyMax)
    return Status::ok();
  return invalid(
      "{}: a vocabulary of {} words with {} topics; allowed: at least 1 topic, and from {} ({} "
      "common words and one for each topic) to {} words",
      path, options.vocabulary, options.topics, least, kCorpusCommonWords, kCorpusVocabularyMax);
}

// The words of one topic, or of all.
struct WordSet {
  explicit WordSet(std::vector<uint32_t> numbers)
      : words(std::move(numbers)), table(weights_of(words)) {}
  static std::vector<double> weights_of(const std::vector<uint32_t>& numbers) {
    std::vector<double> weights;
    for (const uint32_t number : numbers) weights.push_back(1.0 / (number + 2.7));
    return weights;
  }
  uint32_t draw(Random* random) const { return words[table.draw(random)]; }

  std::vector<uint32_t> words;
  AliasTable table;
};

class Language {
 public:
  explicit Language(const CorpusGenOptions& options) {
    std::vector<uint32_t> all, common;
    std::vector<std::vector<uint32_t>> by_topic(options.topics);
    for (uint32_t word = 0; word < options.vocabulary; ++word) {
      text_.push_back(corpus_word(word));
      all.push_back(word);
      if (word < kCorpusCommonWords) {
        common.push_back(word);
      } else {
        by_topic[topic_of(options, word)].push_back(word);
      }
    }
    all_ = std::make_unique<WordSet>(std::move(all));
    common_ = std::make_unique<WordSet>(std::move(common));
    for (auto& words : by_topic) topics_.emplace_back(std::move(words));
  }
  // Appends a line; returns its words.
  uint64_t add_sentence(Random* random, std::string* out) const {
    const uint64_t length = kWordsMin + random->below(kWordsSpread);
    const WordSet* about[2];
    about[0] = about[1] = &topics_[random->below(topics_.size())];
    if (random->chance(kTwoTopics)) about[1] = &topics_[random->below(topics_.size())];
    for (uint64_t i = 0; i < length; ++i) {
      const double kind = random->uniform();
      const WordSet* set = kind < kTopicWords                  ? about[random->below(2)]
                           : kind < kTopicWords + kCommonWords ? common_.get()
                                                               : all_.get();
      if (i > 0) *out += ' ';
      *out += text_[set->draw(random)];
    }
    *out += '\n';
    return length;
  }

 private:
  std::vector<std::string> text_;
  std::unique_ptr<WordSet> all_, common_;
  std::vector<WordSet> topics_;
};

// One thread's share of the work.
struct SentenceMaker {
  std::string_view make(const CorpusGenOptions& options, const Language& language, uint64_t chunk) {
    Random random(hash_pair(hash_pair(options.seed, 0xc0295), chunk));
    text.clear();
    for (uint64_t n = size_of(options, chunk); n > 0; --n)
      words += language.add_sentence(&random, &text);
    return text;
  }
  static uint64_t size_of(const CorpusGenOptions& options, uint64_t chunk) {
    return std::min(kChunk, options.sentences - chunk * kChunk);
  }
  std::string text;
  uint64_t words = 0;
};

}  // namespace

std::string corpus_word(uint32_t number) {
  static constexpr std::string_view kBegin = "bdfghjklmnprstvwxyzc", kEnd = "aeiou";
  std::string word;
  for (uint32_t left = number, i = 0; i < 2 || left > 0; ++i, left /= 100) {
    word += kBegin[left % 100 / 5];
    word += kEnd[left % 5];
  }
  return word;
}

Result<CorpusGenReport> generate_corpus(const CorpusGenOptions& options, const std::string& path,
                                        unsigned threads,
                                        const std::function<void(uint64_t)>& progress) {
  FLUX_RETURN_IF_ERROR(check_options(options, path));
  const Language language(options);
  FLUX_ASSIGN_OR_RETURN(const auto file, PiecewiseFile::create(path));
  const uint64_t chunks = (options.sentences - 1) / kChunk + 1;
  std::vector<SentenceMaker> makers(chunk_threads(chunks, threads));
  std::vector<MakeChunk> make;
  for (SentenceMaker& maker : makers)
    make.push_back([&](uint64_t chunk) { return maker.make(options, language, chunk); });
  FLUX_RETURN_IF_ERROR(write_chunks(file.get(), chunks, make, [&](uint64_t chunk) {
    if (progress) progress(chunk * kChunk + SentenceMaker::size_of(options, chunk));
  }));
  FLUX_RETURN_IF_ERROR(file->commit());
  CorpusGenReport report{options.sentences, 0};
  for (const SentenceMaker& maker : makers) report.words += maker.words;
  return report;
}

Status write_corpus_truth(const CorpusGenOptions& options, const std::string& path) {
  FLUX_RETURN_IF_ERROR(check_options(options, path));
  std::string text;
  for (uint32_t word = 0; word < options.vocabulary; ++word) {
    text += corpus_word(word);
    text += word < kCorpusCommonWords ? "\t-\n" : fmt::format("\t{}\n", topic_of(options, word));
  }
  return write_file_atomic(path, text);
}

}  // namespace flux
