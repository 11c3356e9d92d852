#include "flux/data/text/vw.h"

#include <gtest/gtest.h>

#include "flux/data/text/test_parsers.h"

namespace flux {
namespace {

DataOptions options() {
  DataOptions o;
  o.format = "vw";
  o.slots = {{"user", ""}, {"tags", "", false, true}, {"city", "", true, true}};
  o.dense = {"price", "age"};
  o.weights = true;
  o.raw_keys = true;
  o.minus_one_is_zero = true;
  return o;
}

std::string read(const std::string& line, const DataOptions& o = options()) {
  LineRecord record;
  return outcome_of(VwParser(o), line, &record);
}

TEST(VwLine, ReadsLabelImportanceTagAndNamespaces) {
  EXPECT_EQ(read("-1 0.5 'a7 |user 17 |tags:2 3 5:0.25 |dense age:3 |city Rome a=b:4\r"),
            fmt::format("w=0.5 group=0 ordered=true label=0x0p+0 dense=0x0p+0 dense=0x1.8p+1 "
                        "0:17:0x1p+0 1:3:0x1p+1 1:5:0x1p-1 2:{}:0x1p+0 2:{}:0x1p+2",
                        hash_bytes("Rome"), hash_bytes("a=b")));
  EXPECT_EQ(read("1 2 tag|user 1"),
            "w=2 group=0 ordered=true label=0x1p+0 dense=0x0p+0 dense=0x0p+0 0:1:0x1p+0");
  EXPECT_EQ(read("1 'x |user 1 2|tags|user"),
            "w=1 group=0 ordered=true label=0x1p+0 dense=0x0p+0 dense=0x0p+0 0:1:0x1p+0 "
            "0:2:0x1p+0");
  DataOptions one = options();
  one.slots = {{"user", ""}};
  EXPECT_EQ(read("1 | 7 8", one),
            "w=1 group=0 ordered=true label=0x1p+0 dense=0x0p+0 dense=0x0p+0 0:7:0x1p+0 "
            "0:8:0x1p+0");
}

TEST(VwLine, TheNameIsTheTag) {
  const DataOptions o = options();
  const VwParser parser(o);
  EXPECT_EQ(name_in(parser, "1 2 'a7 |user 1"), "a7");
  EXPECT_EQ(name_in(parser, "1 ''a7|user 1"), "'a7");
  EXPECT_EQ(name_in(parser, "1 2 tag|user 1"), "tag");
  EXPECT_EQ(name_in(parser, "1 2 |user 1"), "");
  EXPECT_EQ(name_in(parser, "1 ' |user 1"), "");
}

TEST(VwLine, EveryMistakeIsNamedWithItsColumn) {
  EXPECT_EQ(read("1 user"), "7: no '|'; the features of a line begin behind a bar");
  EXPECT_EQ(read("|user 1"), "1: no label; a line begins with its label");
  EXPECT_EQ(read("1|user 1"),
            "1: no label: '1' is the tag, as it has no blank behind it or begins with '");
  EXPECT_EQ(read("1 2 3 |user 1"), "5: '3' is a first prediction (base), which is not known here");
  EXPECT_EQ(read("1 2 3 4 |user 1"),
            "7: '4' is one word too many; before the bar stand the label, the importance and a "
            "'tag");
  EXPECT_EQ(read("1 'a b |user 1"),
            "6: 'b' is one word too many; before the bar stand the label, the importance and a "
            "'tag");
  EXPECT_EQ(read("x |user 1"), "1: label 'x' is not a number; a line begins with its label");
  EXPECT_EQ(read("1 -2 |user 1"), "3: weight '-2' is not a number of at least 0");
  EXPECT_EQ(read("1 |usr 1"),
            "4: no slot or dense feature 'usr' is declared, did you mean 'user'?");
  EXPECT_EQ(read("1 |user:x 1"), "9: the weight 'x' of namespace 'user' is not a number");
  EXPECT_EQ(read("1 |user x"), "9: key 'x' of slot 'user' is not a whole number below 2^64");
  EXPECT_EQ(read("1 |user 1:2"),
            "9: key '1' of slot 'user' has the value 2; values other than 1 need 'values: true' of "
            "the slot");
  EXPECT_EQ(read("1 |tags 1:"), "11: '1:' ends where its value should be");
  EXPECT_EQ(read("1 |tags 1:b"), "11: value 'b' of slot 'tags' is not a number");
  EXPECT_EQ(read("1 |tags:1e30 1:1e30"),
            "14: key '1' of slot 'tags' has the value 1e30 x 1e+30, which is more than a float can "
            "hold");
  EXPECT_EQ(read("1 | 1"), "4: a namespace without a name, but data.slots names 3");
  EXPECT_EQ(read("1 |price 1"),
            "4: 'price' is a dense feature, no namespace; write it as |dense price:NUMBER");
  EXPECT_EQ(read("1 |dense prize:1"),
            "10: no slot or dense feature 'prize' is declared, did you mean 'price'?");
  EXPECT_EQ(read("1 |dense price"), "15: dense feature 'price' has no number; write price:NUMBER");
  EXPECT_EQ(read("1 |dense price:1 price:2"),
            "24: dense feature 'price' comes twice; a line has at most one");
  DataOptions plain = options();
  plain.weights = false;
  EXPECT_EQ(read("1 2 |user 1", plain),
            "3: the example has an importance, but the job does not say data.weights: true");
}

}  // namespace
}  // namespace flux
