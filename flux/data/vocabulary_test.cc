#include "flux/data/vocabulary.h"

#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "flux/data/alias_table.h"
#include "flux/data/corpus_gen.h"
#include "flux/data/piecewise_file.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

TEST(Vocabulary, CountsWordsOfPlainAndPackedFiles) {
  const TestDirectory folder;
  const std::string one = folder.write("1.txt", "b a\tb\r\nc b\n\nonce");
  const std::string two = folder.write("2.txt.gz", gzip_text("a c a\na"));
  const std::vector<std::string> files = {one, two};
  const auto counted = count_words(files, 2, 2);
  ASSERT_TRUE(counted.is_ok()) << counted.status().message();
  EXPECT_EQ(counted.value().to_text(), "a 4\nb 3\nc 2\n");
  EXPECT_EQ(counted.value().total, 9U);
  EXPECT_NE(std::string::npos, count_words(files, 5, 1).status().message().find("--min-count"));
}

// Words that lie across the border of two pieces of reading.
TEST(Vocabulary, CountsWhatAPlainReaderCounts) {
  const TestDirectory folder;
  const std::string path = folder.path("c.txt");
  CorpusGenOptions options;
  options.sentences = 30'000;
  options.vocabulary = 3000;
  ASSERT_TRUE(generate_corpus(options, path, 2, {}).is_ok());
  std::map<std::string, uint64_t> plain;
  std::istringstream text(read_text(path));
  for (std::string word; text >> word;) ++plain[word];
  const auto counted = count_words({{path}}, 1, 1);
  ASSERT_TRUE(counted.is_ok());
  ASSERT_EQ(counted.value().words.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(counted.value().counts[i], plain[counted.value().words[i]]);
    if (i > 0) {
      EXPECT_GE(counted.value().counts[i - 1], counted.value().counts[i]);
    }
  }
}

TEST(Vocabulary, ReadsBackWhatItWrites) {
  const TestDirectory folder;
  const std::string text = "the 10\nna\xc3\xafve 3\n:-) 1\n";
  const auto read = Vocabulary::load(folder.write("v.txt", text));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read.value().to_text(), text);
  EXPECT_EQ(read.value().total, 14U);
}

TEST(Vocabulary, AByteOrderMarkIsNoPartOfAWord) {
  const TestDirectory folder;
  const auto read = Vocabulary::load(folder.write("v.txt", "\xef\xbb\xbfthe 3\n"));
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read.value().words, std::vector<std::string>{"the"});
}

// First words that a reader of the file alone would take for a packing, or another kind of file.
TEST(Vocabulary, WordsThatBeginAsOtherFilesDoAreReadBack) {
  const TestDirectory folder;
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string word :
       {"PK\x03\x04",
        "PK\x03\x04"
        "4b",
        "PAR1", "PAR1x", "FLUXBLK1", "BZh91AY&SY", "\x04\x22M\x18", "P*M\x18", "_*M\x18",
        "\xef\xbb\xbf", "\xef\xbb\xbfthe", "\x7f\x01", "\x1f"}) {
    const auto counted = count_words({{folder.write("c.txt", " " + word + " a " + word)}}, 1, 1);
    ASSERT_TRUE(counted.is_ok()) << counted.status().message();
    const auto read = Vocabulary::load(folder.write("v.txt", counted.value().to_text()));
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ(read.value().words, (std::vector<std::string>{word, "a"}));
    EXPECT_EQ(read.value().counts, (std::vector<uint64_t>{2, 1}));
    const auto marked = Vocabulary::load(folder.write("v.txt", mark + word + " 3\n"));
    ASSERT_TRUE(marked.is_ok()) << marked.status().message();
    EXPECT_EQ(marked.value().words, std::vector<std::string>{word});
  }
}

TEST(Vocabulary, SaysWhichLineIsWrong) {
  const TestDirectory folder;
  const std::pair<const char*, const char*> wrong[] = {
      {"a 1\nb\n", "v.txt:2:2: a count must follow"},
      {"a 1\n 2\n", "v.txt:2:1: a word is missing"},
      {"a 1\nb x\n", "v.txt:2:3: "},
      {"a 0\n", "v.txt:1:3: "},
      {"a -1\n", "v.txt:1:3: "},
      {"a 1 2\n", "v.txt:1:3: "},
      {"a 1\nb 2\na 3\n", "v.txt:3:1: "},
      {"a 99999999999999999999\n", "v.txt:1:3: "},
      {"a 18446744073709551615\nb 1\n", "v.txt:2: the counts up to here add up to more than"},
      {"a 1\n\xff 2\n", "v.txt:2:1: byte \\xff is not UTF-8"},
      {"", "holds no word"},
      {"a 1\n\nb 2\n", "v.txt:2:1: "}};
  for (const auto& [text, message] : wrong) {
    const Status status = Vocabulary::load(folder.write("v.txt", text)).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << text;
    EXPECT_NE(std::string::npos, status.message().find(message)) << status.message();
  }
}

TEST(Vocabulary, WhatIsNoTextIsRefused) {
  const TestDirectory folder;
  const auto loaded = [&](const std::string& text) {
    return Vocabulary::load(folder.write("v.txt", text)).status().message();
  };
  const auto counted = [&](const std::string& text) {
    return count_words({{folder.write("c.txt", text)}}, 1, 1).status().message();
  };
  const std::string nul("a 1\nb\0 2\n", 9);
  EXPECT_EQ(loaded(nul),
            folder.path("v.txt:2:2: byte \\x00, which no text has; is this a text file?"));
  EXPECT_EQ(counted(nul), folder.path("c.txt:2: in 'b\\x00': byte \\x00, which no text has; is "
                                      "this a text file?"));
  EXPECT_EQ(loaded("a 1\n" + std::string(70'000, 'x')),
            folder.path("v.txt:2:1: line is longer than 65600 bytes; is this a vocabulary, with "
                        "'word count' in each line?"));
  EXPECT_EQ(counted("a\n\n" + std::string(70'000, 'x')),
            folder.path("c.txt:3: a word is longer than 65536 bytes; is this text?"));
}

// Lines that lie across the border of two pieces of reading, plain and packed.
TEST(Vocabulary, ReadsLargeAndPackedFiles) {
  const TestDirectory folder;
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += fmt::format("word{} {}\n", i, i + 1);
  for (const std::string& path :
       {folder.write("v.txt", text), folder.write("v.gz", gzip_text(text))}) {
    const auto read = Vocabulary::load(path);
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ(read.value().to_text(), text);
    EXPECT_TRUE(Vocabulary::load(path, text.size()).is_ok());
    EXPECT_NE(std::string::npos,
              Vocabulary::load(path, text.size() - 1).status().message().find("larger than"));
  }
}

TEST(Vocabulary, IsWrittenAsItsNameSays) {
  const TestDirectory folder;
  Vocabulary many;
  for (uint64_t i = 0; i < 100'000; ++i) {
    many.words.push_back(fmt::format("word{}", i));
    many.counts.push_back(i + 1);
  }
  for (const char* name : {"v.txt", "v.txt.gz", "v.txt.zst"}) {
    const std::string path = folder.path(name);
    const Status written = write_packed_by_name(path, many.to_text());
    ASSERT_TRUE(written.is_ok()) << written.message();
    const auto read = Vocabulary::load(path);
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ(read.value().words, many.words);
    EXPECT_EQ(read.value().counts, many.counts);
    EXPECT_EQ(read_text(path) == many.to_text(), std::string_view(name) == "v.txt");
  }
}

TEST(AliasTable, DrawsInProportion) {
  const std::vector<double> weights = {1, 0, 5, 0.5, 3.5};
  const AliasTable table(weights);
  std::vector<double> drawn(weights.size());
  Random random(3);
  for (int i = 0; i < 200'000; ++i) ++drawn[table.draw(&random)];
  EXPECT_EQ(drawn[1], 0);
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_NEAR(drawn[i] / 200'000, weights[i] / 10, 0.005) << i;
}

TEST(CorpusGen, BytesDependOnTheOptionsAlone) {
  const TestDirectory folder;
  CorpusGenOptions options;
  options.sentences = 25'000;
  const auto text = [&](const char* name, unsigned threads) {
    EXPECT_TRUE(generate_corpus(options, folder.path(name), threads, {}).is_ok());
    return read_text(folder.path(name));
  };
  const std::string one = text("1.txt", 1);
  EXPECT_EQ(one, text("2.txt", 2));
  EXPECT_EQ(one, gunzip_text(text("3.txt.gz", 2)));
  options.seed = 2;
  EXPECT_NE(one, text("4.txt", 2));
}

// Words of one topic share sentences far more often than words of two.
TEST(CorpusGen, TheTruthShowsInTheText) {
  const TestDirectory folder;
  CorpusGenOptions options;
  options.sentences = 3000;
  options.vocabulary = 1000;
  options.topics = 10;
  ASSERT_TRUE(generate_corpus(options, folder.path("c.txt"), 1, {}).is_ok());
  ASSERT_TRUE(write_corpus_truth(options, folder.path("t.tsv")).is_ok());
  std::map<std::string, std::string> topic;
  std::istringstream truth(read_text(folder.path("t.tsv")));
  for (std::string word, of; truth >> word >> of;) topic[word] = of;
  EXPECT_EQ(topic.size(), 1000U);
  double same = 0, pairs = 0;
  std::istringstream text(read_text(folder.path("c.txt")));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string before;
    for (std::string word; words >> word;) {
      ASSERT_TRUE(topic.contains(word)) << word;
      if (topic[word] == "-") continue;
      if (!before.empty()) ++pairs, same += topic[word] == topic[before] ? 1 : 0;
      before = word;
    }
  }
  EXPECT_GT(same / pairs, 0.5);  // 0.1 by chance
}

TEST(CorpusGen, RefusesWhatCannotBeMade) {
  const TestDirectory folder;
  CorpusGenOptions options;
  EXPECT_FALSE(generate_corpus(options, folder.path("c"), 1, {}).is_ok());
  options.sentences = 1;
  options.vocabulary = 150;
  EXPECT_NE(std::string::npos, generate_corpus(options, folder.path("c"), 1, {})
                                   .status()
                                   .message()
                                   .find("from 500 (100 common words and one"));
}

}  // namespace
}  // namespace flux
