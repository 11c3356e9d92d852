// Sentences to batches: which words are kept, which negatives drawn, and that both are the same
// whenever a batch is read.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "flux/base/text.h"
#include "flux/data/dataset.h"
#include "flux/data/test_files.h"
#include "flux/data/vocabulary.h"

namespace flux {
namespace {

DataOptions options_for(const std::string& vocabulary, double subsample, uint32_t negatives) {
  DataOptions options;
  options.format = "sentences";
  options.vocabulary = vocabulary;
  options.subsample = subsample;
  options.negatives = negatives;
  options.batch_size = 7;
  return options;
}

std::unique_ptr<Dataset> open_text(const std::string& path, const DataOptions& options) {
  const auto geometry = Dataset::scan({{path}}, options, 1);
  EXPECT_TRUE(geometry.is_ok()) << geometry.status().message();
  auto data = Dataset::open(geometry.value(), options);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
  return std::move(data).value();
}

// Calls look(batch) for every batch of an epoch.
template <typename Look>
void for_batches(const Dataset& data, uint32_t epoch, Look look) {
  Batch batch;
  for (uint32_t b = 0; b < data.geometry().blocks.size(); ++b) {
    const auto block = data.open_block(b, epoch);
    ASSERT_TRUE(block.is_ok()) << block.status().message();
    for (uint32_t j = 0; j < data.geometry().batches_in(b); ++j) {
      ASSERT_TRUE(block.value()->read_batch(j, &batch).is_ok());
      look(batch);
    }
  }
}

std::vector<uint64_t> keys_of(const Batch& batch, uint32_t example, uint32_t slot) {
  const size_t at = size_t{example} * batch.slots + slot;
  return {batch.keys.begin() + batch.begin[at], batch.keys.begin() + batch.begin[at + 1]};
}

TEST(Sentences, WordsInTheirOrderWithoutUnknownOnes) {
  const TestDirectory folder;
  const std::string vocabulary = folder.write("v.txt", "b 5\na 3\nlong-word 1\n");
  const std::string text = folder.write("t.txt", "a b  zzz\tb\r\n\n long-word a a\nzzz\nb");
  DataOptions options = options_for(vocabulary, 0, 3);
  options.shuffle = false;
  const auto data = open_text(text, options);
  EXPECT_EQ(data->features().slot_names, (std::vector<std::string>{"words", "negatives"}));
  EXPECT_TRUE(data->features().labels.empty());
  const uint64_t a = word_key("a"), b = word_key("b"), word = word_key("long-word");
  for_batches(*data, 0, [&](const Batch& batch) {
    ASSERT_EQ(batch.size, 5U);
    EXPECT_EQ(keys_of(batch, 0, 0), (std::vector<uint64_t>{a, b, b}));
    EXPECT_EQ(keys_of(batch, 1, 0), (std::vector<uint64_t>{}));
    EXPECT_EQ(keys_of(batch, 2, 0), (std::vector<uint64_t>{word, a, a}));
    EXPECT_EQ(keys_of(batch, 3, 0), (std::vector<uint64_t>{}));
    EXPECT_EQ(keys_of(batch, 4, 0), (std::vector<uint64_t>{b}));
    for (uint32_t i = 0; i < batch.size; ++i) EXPECT_EQ(keys_of(batch, i, 1).size(), 3U);
  });
}

// Draws of one line must not depend on the batch in which it lies, nor on how often it is read.
TEST(Sentences, ALineDrawsTheSameInEveryBatchOfAnEpoch) {
  const TestDirectory folder;
  std::string text, words;
  for (int i = 0; i < 500; ++i) text += fmt::format("w{} x x x x\n", i);
  for (int i = 0; i < 500; ++i) words += fmt::format("w{} 1\n", i);
  const std::string vocabulary = folder.write("v.txt", words + "x 2000\n");
  const std::string path = folder.write("t.txt", text);
  using Line = std::pair<std::vector<uint64_t>, std::vector<uint64_t>>;
  const auto lines = [&](uint32_t batch_size, uint32_t epoch) {
    DataOptions options = options_for(vocabulary, 0.1, 4);
    options.batch_size = batch_size;
    std::map<uint64_t, Line> out;
    for_batches(*open_text(path, options), epoch, [&](const Batch& batch) {
      for (uint32_t i = 0; i < batch.size; ++i) {
        const auto kept = keys_of(batch, i, 0);
        if (!kept.empty()) out[kept[0]] = {kept, keys_of(batch, i, 1)};
      }
    });
    return out;
  };
  const auto first = lines(7, 0);
  EXPECT_EQ(first, lines(7, 0));
  auto other = lines(64, 0);
  EXPECT_EQ(first, other);
  EXPECT_NE(first, lines(7, 1));
}

TEST(Sentences, SharesOfWordsAndNegativesAreAsDescribed) {
  const TestDirectory folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "often often often seldom\n";
  const std::string path = folder.write("t.txt", text);
  const std::string vocabulary = folder.write("v.txt", "often 60000\nseldom 20000\n");
  std::map<uint64_t, double> kept, drawn;
  for_batches(*open_text(path, options_for(vocabulary, 0.01, 5)), 3, [&](const Batch& batch) {
    for (uint32_t i = 0; i < batch.size; ++i) {
      for (const uint64_t key : keys_of(batch, i, 0)) ++kept[key];
      for (const uint64_t key : keys_of(batch, i, 1)) ++drawn[key];
    }
  });
  const auto keep = [](double share) { return (std::sqrt(share / 0.01) + 1) * 0.01 / share; };
  EXPECT_NEAR(kept[word_key("often")] / 60000, keep(0.75), 0.006);
  EXPECT_NEAR(kept[word_key("seldom")] / 20000, keep(0.25), 0.015);
  const double often = std::pow(3, 0.75) / (std::pow(3, 0.75) + 1);
  EXPECT_NEAR(drawn[word_key("often")] / 100'000, often, 0.006);
  EXPECT_EQ(drawn.size(), 2U);
}

TEST(Sentences, ALineThatIsNoTextIsNamed) {
  const TestDirectory folder;
  const DataOptions options = options_for(folder.write("v.txt", "a 1\n"), 0, 1);
  const auto problem = [&](const std::string& text) {
    const auto data = open_text(folder.write("t.txt", text), options);
    Batch batch;
    return data->open_block(0, 0).value()->read_batch(0, &batch).message();
  };
  EXPECT_EQ(problem("a\nb na\xc3\xafve a\r\n"), "");
  EXPECT_EQ(problem(std::string("a\nb \0 a\n", 8)),
            folder.path("t.txt:2:3: byte \\x00, which no text has; is this a text file?"));
  EXPECT_EQ(problem("a\nb\nna\xefve a\n"),
            folder.path("t.txt:3:3: byte \\xef is not UTF-8; if this is text, turn it into UTF-8 "
                        "(iconv), if not, take it out"));
}

TEST(Sentences, OptionsOfOtherFormatsAreRefused) {
  DataOptions options;
  options.format = "sentences";
  EXPECT_NE(std::string::npos, Dataset::scan({}, options, 1).status().message().find("vocabulary"));
  options.vocabulary = "v.txt";
  options.weights = true;
  EXPECT_NE(std::string::npos, Dataset::scan({}, options, 1).status().message().find("weights"));
  options = {};
  options.subsample = 0.5;
  EXPECT_NE(std::string::npos,
            Dataset::scan({}, options, 1).status().message().find("for format sentences"));
}

TEST(Sentences, AMissingVocabularyIsNamed) {
  const TestDirectory folder;
  const std::string path = folder.write("t.txt", "a b\n");
  const DataOptions options = options_for(folder.path("none.txt"), 0, 1);
  const auto geometry = Dataset::scan({{path}}, options, 1);
  EXPECT_EQ(geometry.status().code(), Code::kNotFound);
  EXPECT_NE(std::string::npos, geometry.status().message().find("none.txt"));
}

// The data may be large: reading it first would keep the message back.
TEST(Sentences, ABadVocabularyIsNamedBeforeTheDataIsRead) {
  const TestDirectory folder;
  const DataOptions options = options_for(folder.write("v.txt", "a 1\nb\n"), 0, 1);
  EXPECT_EQ(Dataset::scan({{folder.path("none.txt")}}, options, 1).status().message(),
            folder.path("v.txt:2:2: a count must follow the word"));
}

TEST(Sentences, AChangeFarBehindInAVocabularyIsSeen) {
  const TestDirectory folder;
  std::string words;
  for (int i = 0; i < 200'000; ++i) words += fmt::format("word{} 1\n", i);
  const DataOptions options = options_for(folder.write("v.txt", words), 0, 1);
  const auto cut = Dataset::scan({{folder.write("t.txt", "word1\n")}}, options, 1);
  ASSERT_TRUE(cut.is_ok()) << cut.status().message();
  words[words.size() - 2] = '2';
  folder.write("v.txt", words);
  EXPECT_EQ(Dataset::open(cut.value(), options).status().code(), Code::kInvalid);
}

TEST(Sentences, AnOpenPassKeepsItsVocabulary) {
  const TestDirectory folder;
  const std::string text = folder.write("t.txt", "a b\nb\n");
  const std::string vocabulary = folder.write("v.txt", "a 1\nb 2\n");
  DataOptions options = options_for(vocabulary, 0, 1);
  const auto cut = Dataset::scan({{text}}, options, 1);
  ASSERT_TRUE(cut.is_ok()) << cut.status().message();
  EXPECT_EQ(cut.value().records(), 2U);
  // As a resume finds it.
  const auto frozen = Geometry::from_json(cut.value().to_json());
  ASSERT_TRUE(frozen.is_ok()) << frozen.status().message();
  const auto problem = [&] { return Dataset::open(frozen.value(), options).status(); };
  EXPECT_TRUE(problem().is_ok()) << problem().message();

  folder.write("v.txt", "a 2\nb 1\n");  // other counts: other draws
  EXPECT_EQ(problem().code(), Code::kInvalid);
  EXPECT_NE(std::string::npos, problem().message().find(vocabulary + ": its content has changed"));
  EXPECT_NE(std::string::npos, problem().message().find("put it back until the pass is closed"));
  folder.write("v.txt", "a 1\nb 2\nc 3\n");
  EXPECT_NE(std::string::npos, problem().message().find(vocabulary + ": 12 bytes, was 8"));
  folder.write("v.txt", "a 1\nb 2\n");  // the same text, written later
  EXPECT_TRUE(problem().is_ok()) << problem().message();

  options.vocabulary = folder.write("same.txt", "a 1\nb 2\n");
  EXPECT_TRUE(problem().is_ok()) << problem().message();
  options.vocabulary = folder.write("other.txt", "a 1\nz 2\n");
  EXPECT_NE(std::string::npos, problem().message().find(options.vocabulary + ", was " + vocabulary))
      << problem().message();
}

}  // namespace
}  // namespace flux
