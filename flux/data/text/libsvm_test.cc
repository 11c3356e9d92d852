#include "flux/data/text/libsvm.h"

#include <sstream>

#include <gtest/gtest.h>

#include "flux/data/text/test_parsers.h"

namespace flux {
namespace {

DataOptions svm_options(bool values = true) {
  DataOptions o;
  o.format = "libsvm";
  o.slots = {{"features", "", false, values}};
  o.weights = true;
  o.group = "sid";
  o.raw_keys = true;
  o.minus_one_is_zero = true;
  return o;
}

DataOptions ffm_options(bool values = true) {
  DataOptions o;
  o.format = "libffm";
  o.slots = {{"user", "", false, values}, {"item", "", false, values}};
  o.raw_keys = true;
  return o;
}

std::string svm(const std::string& line, bool values = true) {
  LineRecord record;
  return outcome_of(LibsvmParser(svm_options(values)), line, &record);
}

std::string ffm(const std::string& line, bool values = true) {
  LineRecord record;
  return outcome_of(LibffmParser(ffm_options(values)), line, &record);
}

TEST(LibsvmLine, ReadsLabelWeightSearchAndFeatures) {
  EXPECT_EQ(svm("+1:0.5 qid:q7 3:0.5 18446744073709551615:2 4 # 5:1\r"),
            fmt::format("w=0.5 group={} ordered=true label=0x1p+0 0:3:0x1p-1 "
                        "0:18446744073709551615:0x1p+1 0:4:0x1p+0",
                        hash_bytes("q7")));
  EXPECT_EQ(svm("-1\t3:1"), "w=1 group=0 ordered=true label=0x0p+0 0:3:0x1p+0");
  EXPECT_EQ(svm("0.25"), "w=1 group=0 ordered=true label=0x1p-2");
}

TEST(LibsvmLine, EveryMistakeIsNamedWithItsColumn) {
  EXPECT_EQ(svm(""), "1: no label; a line begins with its label");
  EXPECT_EQ(svm("# all comment"), "1: no label; a line begins with its label");
  EXPECT_EQ(svm("+-1 3:1"), "1: label '+-1' is not a number; a line begins with its label");
  EXPECT_EQ(svm("x 3:1"), "1: label 'x' is not a number; a line begins with its label");
  EXPECT_EQ(svm("1:-2 3:1"), "3: weight '-2' is not a number of at least 0");
  EXPECT_EQ(svm("1 3:"), "5: '3:' ends where its value should be");
  EXPECT_EQ(svm("1 3:x"), "5: value 'x' of slot 'features' is not a number");
  EXPECT_EQ(svm("1 3:1:2"), "5: value '1:2' of slot 'features' is not a number");
  EXPECT_EQ(svm("1 a:1"), "3: key 'a' of slot 'features' is not a whole number below 2^64");
  EXPECT_EQ(svm("1 3:0.5", false),
            "3: key '3' of slot 'features' has the value 0.5; values other than 1 need 'values: "
            "true' of the slot");
  EXPECT_EQ(svm("1 qid:7 3:1 qid:7"),
            "13: 'qid:' comes twice; a line has at most one: take one of them out");
  EXPECT_EQ(svm("1 3:1.0", false), "w=1 group=0 ordered=true label=0x1p+0 0:3:0x1p+0");
}

TEST(LibffmLine, ReadsFieldsAsSlots) {
  EXPECT_EQ(ffm("1 1:5:0.5 0:7"), "w=1 group=0 ordered=false label=0x1p+0 1:5:0x1p-1 0:7:0x1p+0");
  EXPECT_EQ(ffm("1 2:5:1"), "3: there is no field '2'; data.slots has 2, the first is field 0");
  EXPECT_EQ(ffm("1 5"), "3: '5' is no feature; features are FIELD:INDEX:VALUE");
  EXPECT_EQ(ffm("1 1:5:"), "7: '1:5:' ends where its value should be");
  EXPECT_EQ(ffm("1 1::1"), "5: key '' of slot 'item' is not a whole number below 2^64");
  EXPECT_EQ(ffm("1 0:1:2", false),
            "5: key '1' of slot 'user' has the value 2; values other than 1 need 'values: true' of "
            "the slot");
  EXPECT_EQ(ffm(""), "1: no label; a line begins with its label");
}

// With streams and standard conversions, of lines that are known to be good.
TEST(LibsvmLine, AgreesWithAPlainReaderOnMadeLines) {
  Random random(5);
  const LibsvmParser parser(svm_options());
  LineRecord record;
  for (int i = 0; i < 20'000; ++i) {
    std::string line = random.below(2) == 0 ? "1" : "-1";
    for (uint64_t n = random.below(20); n > 0; --n)
      line += fmt::format(" {}:{}", random.next() >> random.below(64),
                          static_cast<float>(random.below(100000)) / 1024);
    std::istringstream in(line);
    double label = 0;
    in >> label;
    std::string want = fmt::format("w=1 group=0 ordered=true label={:a}",
                                   static_cast<float>(label == -1 ? 0 : label));
    for (std::string word; in >> word;)
      want += fmt::format(" 0:{}:{:a}", std::stoull(word),
                          static_cast<float>(std::stod(word.substr(word.find(':') + 1))));
    ASSERT_EQ(outcome_of(parser, line, &record), want) << line;
  }
}

TEST(LibsvmOptions, WhatTheFormatsDoNotHaveIsRefused) {
  DataOptions o = svm_options();
  o.slots.push_back({"more", ""});
  EXPECT_EQ(options_problem(o),
            "data: format libsvm has one slot, but data.slots names 2; libffm and vw have several");
  o = svm_options();
  o.dense = {"price"};
  EXPECT_EQ(options_problem(o),
            "data: format libsvm has no dense features; 'price' cannot be among its lines");
  o = ffm_options();
  o.weights = true;
  EXPECT_EQ(options_problem(o),
            "data: format libffm has no weights of examples; take data.weights out");
  o = ffm_options();
  o.group = "sid";
  EXPECT_EQ(options_problem(o),
            "data: format libffm has no searches or sessions; data.group may name a slot");
  o = ffm_options();
  o.columns = {"user"};
  EXPECT_EQ(options_problem(o),
            "data: columns is for formats multislot and csv, not for format libffm");
}

}  // namespace
}  // namespace flux
