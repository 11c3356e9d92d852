#include "flux/data/tools/guess_format.h"

#include <gtest/gtest.h>

#include "flux/base/text.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

// Format, labels, slots (with ~ for text and * for values) and dense features of a guess; or the
// refusal.
std::string guess(const std::string& text) {
  const TestDirectory folder;
  std::string note;
  const auto found = guess_data_options(folder.write("a.txt", text), &note);
  EXPECT_EQ(note, "");
  if (!found.is_ok()) return found.status().message().substr(folder.path("a.txt").size() + 2);
  const DataOptions& o = found.value();
  std::string out = o.format + " " + join(o.labels, ",") + ":";
  for (const SlotOptions& slot : o.slots)
    out += fmt::format(" {}{}{}", slot.name, slot.text ? "~" : "", slot.values ? "*" : "");
  for (const std::string& name : o.dense) out += " #" + name;
  if (!o.columns.empty()) out += " [" + join(o.columns, ",") + "]";
  return out + (o.weights ? " w" : "") + (o.group.empty() ? "" : " " + o.group) +
         (o.minus_one_is_zero ? " -1" : "") + (o.raw_keys ? " raw" : "");
}

TEST(GuessFormat, EachFormatIsKnownByItsLines) {
  EXPECT_EQ(guess("1 user:17 item:9 price:0.5\n0 user:4\n"), "feasign label: user item #price");
  EXPECT_EQ(guess("1 3:0.5 9:1\n-1 4:1\n"), "libsvm label: features* -1");
  EXPECT_EQ(guess("1:2 qid:4 9:1\n0:1 qid:4 4:1 # x\n"), "libsvm label: features w sid");
  EXPECT_EQ(guess("1 0:3:1 2:9:1\n0 1:4:1\n"), "libffm label: field0 field1 field2");
  EXPECT_EQ(guess("1 |user 17 |tags a b:2\n-1 't |user 4 |dense x:1\n"),
            "vw label: user tags~* #x -1");
  EXPECT_EQ(guess("1 1 2 17 9 1 4 2 0.5 3\n1 0 1 17 1 4 2 0.5 3\n"),
            "multislot label: slot2 slot3 #number4_1 #number4_2 "
            "[label,slot2,slot3,number4_1..number4_2]");
  EXPECT_EQ(guess("1 1 2 0.5 3 1 17 1 0.25 3 1.5 2 1\n1 0 2 0.5 3 1 17 1 9 3 1.5 2 1\n"),
            "multislot label: slot3 #number2_1 #number2_2 #number4 #number5_1 #number5_2 "
            "#number5_3 [label,number2_1..number2_2,slot3,number4,number5_1..number5_3]");
  EXPECT_EQ(guess("click,user,city,price,weight\n1,17,Rome,0.5,1\n0,4|5,NA,,2\n"),
            "csv click: user city~ #price w");
  EXPECT_EQ(guess("user\tlabel\n17:0.5\t1\n"), "csv label: user*");
}

TEST(GuessFormat, LinesOfWindows) {
  EXPECT_EQ(guess("1 |user 17 |tags a b:2\r\n0 |user 4 |dense x:1\r\n"),
            "vw label: user tags~* #x");
  EXPECT_EQ(guess("1 |\r\n0 |\r\n"), guess("1 |\n0 |\n")) << "a bar, and nothing behind it";
  EXPECT_EQ(guess("1 |a 1|\r\n").substr(0, 23), "its format is not clear");
}

// So many that to look for each of them among all others would take long.
TEST(GuessFormat, ManyNames) {
  constexpr int kNames = 60'000;
  std::string numbers = "1 |dense", header, cells;
  for (int i = 0; i < kNames; ++i) {
    numbers += fmt::format(" n{}:1", i);
    header += fmt::format("label{},", i);
    cells += "1,";
  }
  EXPECT_EQ(split(guess(numbers + " |user 3\n"), '#').size(), kNames + 1U);
  EXPECT_EQ(split(guess(header + "user\n" + cells + "17\n"), ',').size(), size_t{kNames});
}

TEST(GuessFormat, SeveralLabelsOfCsv) {
  EXPECT_EQ(guess("label_a,label_b,user\n1,0,17\n0,1,4\n"), "csv label_a,label_b: user");
  EXPECT_EQ(guess("click,user,buy\n1,17,0\n0,4,1\n"), "csv click,buy: user");
  EXPECT_EQ(guess("label,label_name,user\n1,no,17\n0,yes,4\n"), "csv label: label_name~ user");
  EXPECT_EQ(guess("user,buy\n17,0\n4,1\n"), "csv buy: user");
}

// `bad` among 20 lines that differ, at the begin, behind it, and in the middle.
void expect_in_spite_of(const std::string& bad, const std::string& header, const std::string& good,
                        const std::string& format) {
  for (const size_t at : {0, 1, 10}) {
    std::string text = header;
    for (size_t i = 0; i < 20; ++i) {
      if (i == at) text += bad + "\n";
      text += fmt::format(fmt::runtime(good), i % 2, i + 3) + "\n";
    }
    EXPECT_EQ(guess(text), format) << text;
  }
}

TEST(GuessFormat, MostLinesSayIt) {
  const std::string tabs(26, '\t');
  expect_in_spite_of("1 user:x", "", "{} user:{} price:0.5", "feasign label: user #price");
  expect_in_spite_of("", "", "{} user:{}", "feasign label: user");
  expect_in_spite_of("1,0 user:4", "", "{} user:{}", "feasign label: user");
  expect_in_spite_of("1 3", "", "{} {}:0.5", "libsvm label: features*");
  expect_in_spite_of("1 0:x:1", "", "{} 0:{}:1", "libffm label: field0");
  expect_in_spite_of("no |user 3", "", "{} |user {}", "vw label: user");
  expect_in_spite_of("1 1 2 5", "", "1 {} 1 {}", "multislot label: slot2 [label,slot2]");
  expect_in_spite_of("1,2,3", "label,user\n", "{},{}", "csv label: user");
  expect_in_spite_of("1\t2", "", "{}\t{}" + std::string(12, '\t') + tabs, "criteo_tsv label:");
}

TEST(GuessFormat, MostLinesSayItThoughManyDoNot) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += i < 90 ? "what?\n" : fmt::format("{} user:{}\n", i % 2, i);
  EXPECT_EQ(guess(text), "feasign label: user");
}

// What was converted is known by its keys, in every format.
TEST(GuessFormat, LargeKeysAreThoseOfTables) {
  EXPECT_EQ(guess("1 user:4294967296 item:18446744073709551615\n0 user:5294967296\n"),
            "feasign label: user item raw");
  EXPECT_EQ(guess("1 user:4294967295 item:18446744073709551615\n0 user:5294967296\n"),
            "feasign label: user item");
  EXPECT_EQ(guess("1 4294967296:0.5\n0 4294967297:1\n"), "libsvm label: features* raw");
  EXPECT_EQ(guess("1 0:4294967296:1\n0 1:4294967297:1\n"), "libffm label: field0 field1 raw");
  EXPECT_EQ(guess("1 |user 4294967296\n0 |user 4294967296:2\n"), "vw label: user* raw");
  EXPECT_EQ(guess("1 1 1 4294967296\n1 0 1 0\n"), "multislot label: slot2 [label,slot2] raw")
      << "a key of 0 is padding";
  EXPECT_EQ(guess("label,sid,user\n1,7,4294967296|4294967297\n0,7,\n"), "csv label: user sid raw");
  EXPECT_EQ(guess("label,user\r\n1,4294967296\r\n"), "csv label: user raw");
  EXPECT_EQ(guess("label,user,city\n1,4294967296,Rome\n"), "csv label: user city~") << "texts";
  EXPECT_EQ(guess("label,price\n1,0.5\n"), "csv label: #price") << "no keys";
}

TEST(GuessFormat, AFewSmallKeysAmongLargeOnesAreMistakes) {
  const auto of = [](int small) {
    std::string text;
    for (int i = 0; i < 300; ++i)
      text += fmt::format("1 user:{}\n", i < small ? i : 5294967296 + i);
    return guess(text);
  };
  EXPECT_EQ(of(3), "feasign label: user raw");
  EXPECT_EQ(of(4), "feasign label: user");
}

// A hundredth of a column's cells may be mistakes, more make it something else.
TEST(GuessFormat, OddCellsDoNotMakeAColumnAnother) {
  const auto columns = [](int odd, bool short_line) {
    std::string text = "label,user,price,city\n";
    if (short_line) text += "1,2\n";
    for (int i = 0; i < 400; ++i)
      text += fmt::format("{},{},{},{}\n", i == 100 ? "?" : std::to_string(i % 2),
                          i < odd ? "u7" : std::to_string(i), i < odd ? "cheap" : "0.5",
                          i % 3 == 0 ? "7" : "Rome");
    return guess(text);
  };
  for (const bool short_line : {false, true}) {
    EXPECT_EQ(columns(0, short_line), "csv label: user city~ #price");
    EXPECT_EQ(columns(3, short_line), "csv label: user city~ #price");
    EXPECT_EQ(columns(5, short_line), "csv label: user~ price~ city~");
  }
}

TEST(GuessFormat, AByteOrderMarkIsNoPartOfTheFirstLine) {
  EXPECT_EQ(guess("\xef\xbb\xbf"
                  "1 user:17\n0 user:4\n"),
            "feasign label: user");
}

TEST(GuessFormat, WhatIsNotClearIsSaid) {
  EXPECT_EQ(guess("some words\n"),
            "its format is not clear; its first line begins with 'some words'\nname a job whose "
            "data section says it: --job JOB");
  EXPECT_EQ(guess("1,2,3\n4,5,6\n"),
            "its format is not clear; its first line begins with '1,2,3'\nname a job whose data "
            "section says it: --job JOB (of csv lines without a header: format: csv, csv: {header: "
            "false}, columns: [...])");
  EXPECT_EQ(guess("1 user:17 x\n").substr(0, 23), "its format is not clear");
  EXPECT_EQ(guess("1 2 3\n4\n").substr(0, 23), "its format is not clear") << "counts do not fit";
  EXPECT_EQ(guess("1 user:1\n1 user:x\n").substr(0, 23), "its format is not clear") << "half";
  EXPECT_EQ(guess(""), "holds no record");
}

}  // namespace
}  // namespace flux
