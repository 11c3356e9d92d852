#include "flux/data/text/feasign.h"

#include <fstream>

#include <gtest/gtest.h>

#include "flux/base/hash.h"
#include "flux/data/test_files.h"
#include "flux/data/text/test_parsers.h"

namespace flux {
namespace {

DataOptions options() {
  DataOptions o;
  o.format = "feasign";
  o.slots = {{"user", ""}, {"item", ""}, {"history", "item"}};
  o.dense = {"price", "age"};
  o.labels = {"click", "buy"};
  o.weights = true;
  o.group = "user";
  o.dense_transform = "none";
  return o;
}

uint64_t key(const char* space, uint64_t feasign) {
  return hash_pair(hash_bytes(space), feasign);
}

std::string refusal(const std::string& line, const DataOptions& o = options()) {
  return refusal_of(FeasignParser(o), line);
}

std::vector<uint64_t> keys_of(const LineRecord& record) {
  return {record.line_keys().begin(), record.line_keys().end()};
}

TEST(FeasignLine, ReadsLabelsWeightKeysAndNumbers) {
  LineRecord record;
  const auto wrong = FeasignParser(options()).parse(
      PaddedLine("1,0 w=0.5 id=x7 sid=q user:17 item:9\t history:3  history:5 price:0.25\r").view(),
      &record);
  ASSERT_FALSE(wrong) << wrong->what;
  EXPECT_EQ(record.labels, (std::vector<float>{1, 0}));
  EXPECT_EQ(record.weight, 0.5F);
  EXPECT_EQ(record.dense, (std::vector<float>{0.25F, 0}));
  EXPECT_EQ(std::vector<uint32_t>(record.line_slots().begin(), record.line_slots().end()),
            (std::vector<uint32_t>{0, 1, 2, 2}));
  EXPECT_EQ(keys_of(record), (std::vector<uint64_t>{key("user", 17), key("item", 9), key("item", 3),
                                                    key("item", 5)}));
  EXPECT_TRUE(record.ordered);
  EXPECT_NE(record.group, 0U);
}

TEST(FeasignLine, ARecordIsForgottenByTheNext) {
  LineRecord record;
  const FeasignParser parser(options());
  ASSERT_FALSE(parser.parse(PaddedLine("1,1 w=2 history:1 user:2 age:3").view(), &record));
  EXPECT_FALSE(record.ordered);
  ASSERT_FALSE(parser.parse(PaddedLine("0,0").view(), &record));
  EXPECT_EQ(record.weight, 1);
  EXPECT_EQ(record.count, 0U);
  EXPECT_TRUE(record.ordered);
  EXPECT_EQ(record.dense, (std::vector<float>{0, 0}));
  EXPECT_EQ(record.group, 0U);
}

TEST(FeasignLine, EveryMistakeIsNamedWithItsColumn) {
  EXPECT_EQ(refusal(""), "1: an empty line; a line begins with its label");
  EXPECT_EQ(refusal("1 user:1"), "1: 1 label, but data.labels names 2");
  EXPECT_EQ(refusal("1,x"),
            "3: label 'x' is not a number; a line begins with 2 labels, with commas between them");
  EXPECT_EQ(
      refusal("1,nan user:1"),
      "3: label 'nan' is not a number; a line begins with 2 labels, with commas between them");
  EXPECT_EQ(refusal("1,0 usr:4"),
            "5: no slot or dense feature 'usr' is declared, did you mean 'user'?");
  EXPECT_EQ(refusal("1,0 user:18446744073709551616"),
            "10: key '18446744073709551616' of slot 'user' is not a whole number below 2^64");
  EXPECT_EQ(refusal("1,0 user:18446744073709551615"), "");
  EXPECT_EQ(refusal("1,0 user:-1"), "10: key '-1' of slot 'user' is not a whole number below 2^64");
  EXPECT_EQ(refusal("1,0 user:1:0.5"),
            "10: key '1:0.5' of slot 'user' is not a whole number below 2^64; values (KEY:NUMBER) "
            "need 'values: true' of the slot");
  EXPECT_EQ(refusal("1,0 user"), "5: 'user' is no feature; features are NAME:KEY");
  EXPECT_EQ(refusal("1,0 price:inf"), "11: 'inf' of dense feature 'price' is not a number");
  EXPECT_EQ(refusal("1,0 price:1 user:4 price:1"),
            "26: dense feature 'price' comes twice; a line has at most one");
  EXPECT_EQ(refusal("1,0 price:1 age:1"), "");
  EXPECT_EQ(refusal("1,0 w=-1"), "7: weight '-1' is not a number of at least 0");
  EXPECT_EQ(refusal("1,0 v=1"),
            "5: 'v=' is not known; w=, id= and sid= are, features are NAME:KEY");
  EXPECT_EQ(refusal("1,0 w=1 user:4 w=1"),
            "16: 'w=' comes twice; a line has at most one: take one of them out");
  EXPECT_EQ(refusal("1,0 sid=a sid=b"),
            "11: 'sid=' comes twice; a line has at most one: take one of them out");
  EXPECT_EQ(refusal("1,0 id=a w=1 user:4 id="),
            "21: 'id=' comes twice; a line has at most one: take one of them out");
  EXPECT_EQ(refusal("1,0 sid=a id=a w=1"), "");
  DataOptions no_weights = options();
  no_weights.weights = false;
  EXPECT_EQ(refusal("1,0 w=1", no_weights),
            "5: the example has a weight, but the job does not say data.weights: true");
}

TEST(FeasignLine, ReadsTextKeysAndValues) {
  DataOptions o = options();
  o.slots = {{"user", ""}, {"tag", "", false, true}, {"city", "", true}, {"word", "", true, true}};
  LineRecord record;
  const auto wrong = FeasignParser(o).parse(
      PaddedLine("1,0 city:a:b tag:3:0.5 tag:4 tag:5:-2 word:x:y:1e2 word:z user:7").view(),
      &record);
  ASSERT_FALSE(wrong) << wrong->what;
  EXPECT_EQ(keys_of(record),
            (std::vector<uint64_t>{key("city", hash_bytes("a:b")), key("tag", 3), key("tag", 4),
                                   key("tag", 5), key("word", hash_bytes("x:y")),
                                   key("word", hash_bytes("z")), key("user", 7)}));
  EXPECT_EQ(std::vector<float>(record.line_values().begin(), record.line_values().end()),
            (std::vector<float>{1, 0.5F, 1, -2, 100, 1, 1}));
  EXPECT_EQ(refusal("1,0 tag:3:x", o), "11: value 'x' of slot 'tag' is not a number");
  EXPECT_EQ(refusal("1,0 tag:3:", o), "11: value '' of slot 'tag' is not a number");
  EXPECT_EQ(refusal("1,0 tag:3:nan", o), "11: value 'nan' of slot 'tag' is not a number");
  EXPECT_EQ(refusal("1,0 tag:3:1:2", o),
            "9: key '3:1' of slot 'tag' is not a whole number below 2^64");
  EXPECT_EQ(refusal("1,0 city:", o), "10: slot 'city' has no key");
}

// A line that is mostly good.
std::string made_line(Random* random) {
  const char* const words[] = {
      "user:", "item:", "history:", "price:", "age:", "tag:", "a_name_longer_than_16:",
      "city:", "w=",    "sid=",     "id=",    "tag:", "tag:", "city:"};
  std::string line = random->below(20) == 0 ? "1" : "1,0";
  for (uint64_t n = random->below(12); n > 0; --n) {
    line += random->below(10) == 0 ? "\t" : " ";
    if (random->below(30) == 0) line += " ";
    line += words[random->below(std::size(words))];
    const uint64_t bits = random->below(65);
    line += fmt::format("{}", bits == 0 ? 0 : random->next() >> (64 - bits));
    if (random->below(4) == 0) line += fmt::format(":{}", random->below(1000) / 8.0);
    if (random->below(40) == 0) line += fmt::format("{}", random->next());
    if (random->below(40) == 0) line += "e-3";
  }
  return line;
}

TEST(FeasignLine, TheFastParserReadsWhatThePlainOneReads) {
  DataOptions o = options();
  o.slots.push_back({"tag", "", false, true});
  o.slots.push_back({"a_name_longer_than_16", "", false, true});
  o.slots.push_back({"city", "", true, true});
  o.group = "sid";
  o.slices = {"item"};
  const LineShape shape(o);
  expect_fast_as_plain(FastFeasign(shape), PlainFeasign(shape), made_line, " \t:=,.-e019uw\r");
}

TEST(FeasignLine, TheNameIsWhatIdSays) {
  const DataOptions o = options();
  const FeasignParser parser(o);
  EXPECT_EQ(name_in(parser, "1,0 user:1 id=a7 item:2"), "a7");
  EXPECT_EQ(name_in(parser, "1,0 user:1\tid=id=x\r"), "id=x");
  EXPECT_EQ(name_in(parser, "1,0 id= user:1"), "");
  EXPECT_EQ(name_in(parser, "1,0 sid=s7 user:1"), "");
}

TEST(FeasignBlock, KeysStandSlotBySlotWhateverTheOrderOfTheLine) {
  const TestDirectory folder;
  const std::string path = folder.path("a.txt");
  std::ofstream(path) << "1,0 history:3 user:1 history:4\n0,1 w=3 item:7 price:2\n";
  DataOptions o = options();
  o.shuffle = false;
  o.batch_size = 2;
  const std::vector<std::string> files = {path};
  const auto geometry = Dataset::scan(files, o, 1);
  ASSERT_TRUE(geometry.is_ok()) << geometry.status().message();
  const auto data = Dataset::open(geometry.value(), o);
  ASSERT_TRUE(data.is_ok()) << data.status().message();
  const auto block = data.value()->open_block(0, 0);
  ASSERT_TRUE(block.is_ok());
  Batch batch;
  ASSERT_TRUE(block.value()->read_batch(0, &batch).is_ok());
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0, 0, 1})) << "label after label";
  EXPECT_EQ(batch.begin, (std::vector<uint32_t>{0, 1, 1, 3, 3, 4, 4}));
  EXPECT_EQ(batch.keys, (std::vector<uint64_t>{key("user", 1), key("item", 3), key("item", 4),
                                               key("item", 7)}));
  EXPECT_EQ(batch.weights, (std::vector<float>{1, 3}));
  EXPECT_EQ(batch.dense_values, (std::vector<float>{0, 0, 2, 0}));
}

TEST(FeasignBlock, ABadLineIsNamedByFileAndLine) {
  const TestDirectory folder;
  const std::string path = folder.path("a.txt");
  std::ofstream(path) << "1,0 user:1\n1,0 user:x\n";
  DataOptions o = options();
  const std::vector<std::string> files = {path};
  const auto geometry = Dataset::scan(files, o, 1);
  ASSERT_TRUE(geometry.is_ok());
  const auto data = Dataset::open(geometry.value(), o);
  ASSERT_TRUE(data.is_ok());
  Batch batch;
  const Status status = data.value()->open_block(0, 0).value()->read_batch(0, &batch);
  EXPECT_EQ(status.message(),
            path + ":2:10: key 'x' of slot 'user' is not a whole number below 2^64");
}

TEST(DataOptions, NamesMustBeDeclaredOnceAndFitTheFormat) {
  DataOptions o = options();
  o.dense.emplace_back("user");
  EXPECT_EQ(options_problem(o), "data: 'user' is declared twice among slots, dense and labels");
  o = options();
  o.group = "usr";
  EXPECT_EQ(options_problem(o),
            "data.group 'usr' is no slot, did you mean 'user'?; allowed: user, item, history, sid");
  o = options();
  o.slots.push_back({"weight", ""});
  EXPECT_EQ(options_problem(o), "data: 'weight' is reserved; give the feature another name");
  o = DataOptions();
  o.weights = true;
  EXPECT_EQ(options_problem(o),
            "data: format criteo_tsv has fixed columns; slots, dense, labels, weights, group, "
            "raw_keys, one_key, columns, csv, minus_one_is_zero and metrics.slices are for other "
            "formats");
}

}  // namespace
}  // namespace flux
