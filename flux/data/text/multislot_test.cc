#include "flux/data/text/multislot.h"

#include <gtest/gtest.h>

#include "flux/data/text/test_parsers.h"

namespace flux {
namespace {

DataOptions options() {
  DataOptions o;
  o.format = "multislot";
  o.slots = {{"user", ""}, {"item", ""}, {"tags", ""}};
  o.dense = {"price", "age"};
  o.labels = {"click"};
  o.columns = {"click", "user", "item", "tags", "dense"};
  o.dense_transform = "none";
  o.raw_keys = true;
  return o;
}

std::vector<LineColumn> columns(const DataOptions& o) {
  const auto out = multislot_columns(o);
  EXPECT_TRUE(out.is_ok()) << out.status().message();
  return out.value();
}

std::string refusal(const std::string& line, const DataOptions& o = options()) {
  return refusal_of(MultiSlotParser(o, columns(o)), line);
}

std::string read(const std::string& line, const DataOptions& o = options()) {
  LineRecord record;
  return outcome_of(MultiSlotParser(o, columns(o)), line, &record);
}

TEST(MultiSlotLine, ReadsSlotBySlotAndLeavesPaddingOut) {
  EXPECT_EQ(read("1 1 1 17 1 0 3 4 0 5 2 0.5 -3"),
            "w=1 group=0 ordered=true label=0x1p+0 dense=0x1p-1 dense=-0x1.8p+1 0:17:0x1p+0 "
            "2:4:0x1p+0 2:5:0x1p+0");
  EXPECT_EQ(read("1 0 0 0 0 2 1e1 2  \r"),
            "w=1 group=0 ordered=true label=0x0p+0 dense=0x1.4p+3 dense=0x1p+1");
  EXPECT_EQ(read(" 1 1\t1 18446744073709551615  0 0 2 1 2"),
            "w=1 group=0 ordered=true label=0x1p+0 dense=0x1p+0 dense=0x1p+1 "
            "0:18446744073709551615:0x1p+0");
}

TEST(MultiSlotLine, EveryMistakeIsNamedWithItsSlot) {
  EXPECT_EQ(refusal(""), "1: slot 'click' (1st) is missing: the line ends after 0 of 5 slots");
  EXPECT_EQ(refusal("1 1 1 17 4 1 2"),
            "15: slot 'item' (3rd) says 4 values, the line ends after 2");
  EXPECT_EQ(refusal("1 1 1 17"),
            "9: slot 'item' (3rd) is missing: the line ends after 2 of 5 slots");
  EXPECT_EQ(refusal("2 1 1 1 17"), "1: slot 'click' (1st) says 2 values; it has 1");
  EXPECT_EQ(refusal("1 1 x 17"),
            "5: slot 'user' (2nd) begins with 'x', not with the number of its values");
  EXPECT_EQ(refusal("1 1 1 18446744073709551616"),
            "7: key '18446744073709551616' of slot 'user' is not a whole number below 2^64");
  EXPECT_EQ(refusal("1 nan 1 1"), "3: label 'click' is 'nan', not a number");
  EXPECT_EQ(refusal("1 1 1 1 1 1 1 1 3 1 2 3"), "17: slot 'dense' (5th) says 3 values; it has 2");
  EXPECT_EQ(refusal("1 1 1 1 1 1 1 1 2 x 2"), "19: 'x' of dense feature 'price' is not a number");
  EXPECT_EQ(
      refusal("1 1 1 1 1 1 1 1 2 1 2 1 9"),
      "23: the line goes on with '1' behind its last slot 'dense' (5th); is a slot missing in "
      "data.columns, or is a number of values too small?");
}

TEST(MultiSlotLine, ReadsWeightsNamesSessionsAndLeavesColumnsOut) {
  DataOptions o = options();
  o.weights = true;
  o.group = "sid";
  o.columns = {"id", "logkey", "weight", "click", "-", "user", "item", "tags", "age", "price"};
  EXPECT_EQ(
      read("1 a7 1 0123456789abcdef0123456789abcdefx 1 0.25 1 1 3 x y z 1 1 1 2 1 3 1 7 1 8", o),
      fmt::format("w=0.25 group={} ordered=true label=0x1p+0 dense=0x1p+3 dense=0x1.cp+2 "
                  "0:1:0x1p+0 1:2:0x1p+0 2:3:0x1p+0",
                  hash_bytes("0123456789abcdef")));
  EXPECT_EQ(refusal("1 a 1 b 1 -1", o), "11: weight '-1' is not a number of at least 0");
}

// As Paddle has float slots of several numbers beside others.
DataOptions with_ranges() {
  DataOptions o = options();
  o.dense = {"price", "a1", "a2", "a3", "b1", "b2"};
  o.columns = {"a1..a3", "click", "user", "price", "b1..b2", "item", "tags"};
  return o;
}

TEST(MultiSlotLine, SeveralSlotsOfNumbers) {
  EXPECT_EQ(read("3 1 2 3 1 1 1 17 1 9 2 4 5 0 0", with_ranges()),
            "w=1 group=0 ordered=true label=0x1p+0 dense=0x1.2p+3 dense=0x1p+0 dense=0x1p+1 "
            "dense=0x1.8p+1 dense=0x1p+2 dense=0x1.4p+2 0:17:0x1p+0");
  EXPECT_EQ(refusal("2 1 2 1 1 1 17 1 9 2 4 5 0 0", with_ranges()),
            "1: slot 'a1..a3' (1st) says 2 values; it has 3");
  EXPECT_EQ(refusal("3 1 x 3 1 1 1 17 1 9 2 4 5 0 0", with_ranges()),
            "5: 'x' of dense feature 'a2' is not a number");
}

TEST(MultiSlotLine, RangesAreInTheOrderOfDense) {
  const auto problem = [](const std::string& first, const std::string& second) {
    DataOptions o = with_ranges();
    o.columns = {"click", "user", "item", "tags", "price", first, second};
    return multislot_columns(o).status().message().substr(0, 44);
  };
  EXPECT_EQ(problem("a1..a3", "b1..b2"), "");
  EXPECT_EQ(problem("a1..a1", "a2..b2"), "");
  EXPECT_EQ(problem("a3..a1", "b1..b2"), "data.columns: 'a3..a1' (the 6th) is no FIRST");
  EXPECT_EQ(problem("a1..a3", "a3..b2"), "data.columns: 'a3..b2' (the 7th) is no FIRST") << "twice";
  EXPECT_EQ(problem("a1..a3", "b1..user"), "data.columns: 'b1..user' (the 7th) is no FIR");
  EXPECT_EQ(problem("a1..a3", "b1"), "data.columns: the dense feature 'b2' is not ");
}

TEST(MultiSlotLine, ColumnsMustFitWhatIsDeclared) {
  const auto problem = [](std::vector<std::string> names, bool weights = false) {
    DataOptions o = options();
    o.columns = std::move(names);
    o.weights = weights;
    return multislot_columns(o).status().message();
  };
  EXPECT_EQ(problem({"click", "usr", "item", "tags", "dense"}),
            "data.columns: 'usr' (the 2nd) is no label, slot or dense feature, did you mean "
            "'user'?; declare it, or write - for a column that is not read");
  EXPECT_EQ(problem({"click", "user", "tags", "dense"}),
            "data.columns: the slot 'item' is not among them; where does it stand in a line?");
  EXPECT_EQ(problem({"click", "user", "user", "item", "tags", "dense"}),
            "data.columns: 'user' comes twice");
  EXPECT_EQ(problem({"click", "user", "item", "tags", "dense"}, true),
            "data.columns: data.weights is true, but no column is 'weight'");
  EXPECT_EQ(problem({"click", "user", "item", "tags", "dense", "age"}),
            "data.columns: has 'dense', which stands for all dense features, and also 'age'");
  EXPECT_EQ(problem({}), "") << "labels, slots, dense";
  DataOptions o = options();
  o.columns = {"sid", "logkey", "click", "user", "item", "tags", "dense"};
  EXPECT_EQ(multislot_columns(o).status().message(), "") << "nobody asks for sessions";
  o.group = "sid";
  EXPECT_EQ(multislot_columns(o).status().message(),
            "data.columns: data.group is sid, which both 'sid' and 'logkey' say; write - for the "
            "column that is not to be read");
}

std::string made_line(Random* random) {
  std::string line = fmt::format("1 {}", random->below(2));
  for (int slot = 0; slot < 3; ++slot) {
    const uint64_t count = random->below(random->below(10) == 0 ? 30 : 4);
    line += fmt::format(" {}", count);
    for (uint64_t i = 0; i < count; ++i)
      line += fmt::format(" {}", random->next() >> random->below(64));
  }
  return line + fmt::format(" 2 {} -{}", random->below(1000) / 16.0, random->below(1000));
}

TEST(MultiSlotLine, TheNameIsInItsColumnOrTheLogkey) {
  DataOptions o = options();
  const auto name = [&](std::vector<std::string> names, const std::string& line) {
    o.columns = std::move(names);
    return name_in(MultiSlotParser(o, columns(o)), line);
  };
  const std::string logkey(40, 'k');
  EXPECT_EQ(name({"id", "click", "user", "item", "tags", "dense"}, "1 a7 1 1 0 0 0 2 1 2"), "a7");
  EXPECT_EQ(name({"click", "user", "item", "tags", "dense", "id"}, "1 1 2 5 6 0 0 2 1 2 1 b\r"),
            "b");
  EXPECT_EQ(name({"id", "click", "user", "item", "tags", "dense"}, "1 - 1 1 0 0 0 2 1 2"), "");
  EXPECT_EQ(name({"click", "user", "item", "tags", "dense"}, "1 1 0 0 0 2 1 2"), "");
  EXPECT_EQ(name({"logkey", "click", "user", "item", "tags", "dense"},
                 "1 " + logkey + " 1 1 0 0 0 2 1 2"),
            logkey);
  for (const bool id_first : {true, false})
    EXPECT_EQ(name({id_first ? "id" : "logkey", id_first ? "logkey" : "id", "click", "user", "item",
                    "tags", "dense"},
                   (id_first ? "1 a7 1 " + logkey : "1 " + logkey + " 1 a7") + " 1 1 0 0 0 2 1 2"),
              "a7");
}

TEST(MultiSlotLine, TheFastParserReadsWhatThePlainOneReads) {
  const DataOptions o = options();
  const LineShape shape(o);
  const std::vector<LineColumn> places = columns(o);
  expect_fast_as_plain(FastMultiSlot(shape, places), PlainMultiSlot(shape, places), made_line,
                       " \t.-e0123456789\r");
}

TEST(MultiSlotLine, TheFastParserReadsSeveralSlotsOfNumbersToo) {
  const DataOptions o = with_ranges();
  const LineShape shape(o);
  const std::vector<LineColumn> places = columns(o);
  expect_fast_as_plain(
      FastMultiSlot(shape, places), PlainMultiSlot(shape, places),
      [](Random* random) {
        const auto number = [&] { return random->below(1000) / 16.0; };
        return fmt::format("3 {} {} -{} 1 1 1 {} 1 {} 2 {} {} 0 1 7", number(), number(), number(),
                           random->next(), number(), number(), number());
      },
      " \t.-e0123456789\r");
}

}  // namespace
}  // namespace flux
