#include "flux/data/text/csv.h"

#include <gtest/gtest.h>

#include "flux/data/test_files.h"
#include "flux/data/text/test_parsers.h"

namespace flux {
namespace {

DataOptions options() {
  DataOptions o;
  o.format = "csv";
  o.slots = {{"user", ""}, {"tags", "", false, true}, {"city", "", true}};
  o.dense = {"price"};
  o.labels = {"click"};
  o.csv.missing = {"", "NA"};
  o.columns = {"click", "user", "tags", "city", "price"};
  o.raw_keys = true;
  o.dense_transform = "none";
  return o;
}

std::string read(const std::string& line, const DataOptions& o = options()) {
  LineRecord record;
  const auto columns = columns_of(o.columns, o);
  EXPECT_TRUE(columns.is_ok()) << columns.status().message();
  return outcome_of(CsvParser(o, columns.value()), line, &record);
}

TEST(CsvLine, ReadsCellsListsQuotesAndWhatIsMissing) {
  EXPECT_EQ(read("1,17,3:0.5|4,Rome,0.25\r"),
            fmt::format("w=1 group=0 ordered=true label=0x1p+0 dense=0x1p-2 0:17:0x1p+0 "
                        "1:3:0x1p-1 1:4:0x1p+0 2:{}:0x1p+0",
                        hash_bytes("Rome")));
  EXPECT_EQ(read("0,NA,,\"a \"\"b\"\", c\",\"2\""),
            fmt::format("w=1 group=0 ordered=true label=0x0p+0 dense=0x1p+1 2:{}:0x1p+0",
                        hash_bytes("a \"b\", c")));
  EXPECT_EQ(read("1,,,,"), "w=1 group=0 ordered=true label=0x1p+0 dense=0x0p+0");
}

TEST(CsvLine, TheNameIsInTheColumnId) {
  DataOptions o = options();
  o.columns = {"click", "user", "tags", "city", "price", "id"};
  const auto name = [&](const std::string& line) {
    return name_in(CsvParser(o, columns_of(o.columns, o).value()), line);
  };
  EXPECT_EQ(name("1,17,,,0.5,a7"), "a7");
  EXPECT_EQ(name("1,17,,\"Rome, x\",0.5,\"a \"\"7\"\", b\"\r"), "a \"7\", b");
  EXPECT_EQ(name("1,17,,,0.5,"), "");
  EXPECT_EQ(name("1,17,,,0.5,NA"), "");
  o.columns.back() = "-";
  EXPECT_EQ(name("1,17,,,0.5,a7"), "");
}

TEST(CsvLine, ReadsOtherColumnsAndOtherCharacters) {
  DataOptions o = options();
  o.columns = {"-", "city", "id", "weight", "price", "sid", "tags", "user", "click"};
  o.weights = true;
  o.group = "sid";
  o.csv.separator = "tab";
  o.csv.quote = "";
  o.csv.list = ";";
  EXPECT_EQ(read("?\t\t7\t\t\t\t\t\t1", o), "w=1 group=0 ordered=true label=0x1p+0 dense=0x0p+0");
  EXPECT_EQ(read("?\t\"Rome\";x\t7\t0.5\t\ts\t4\t5;6\t1", o),
            fmt::format("w=0.5 group={} ordered=false label=0x1p+0 dense=0x0p+0 2:{}:0x1p+0 "
                        "2:{}:0x1p+0 1:4:0x1p+0 0:5:0x1p+0 0:6:0x1p+0",
                        hash_bytes("s"), hash_bytes("\"Rome\""), hash_bytes("x")));
}

TEST(CsvLine, EveryMistakeIsNamedWithItsColumn) {
  EXPECT_EQ(read("1,2,3"), "6: 3 cells; expected 5: click, user, tags, city, price");
  EXPECT_EQ(read("1,2,3,4,5,6"), "12: 6 cells; expected 5: click, user, tags, city, price");
  EXPECT_EQ(read(",2,3,4,5"), "1: label 'click' is missing");
  EXPECT_EQ(read("x,2,3,4,5"), "1: label 'click' is 'x', not a number");
  EXPECT_EQ(read("1,x,3,4,5"),
            "3: key 'x' of slot 'user' is not a whole number below 2^64; keys that are words want "
            "text: true of the slot");
  EXPECT_EQ(
      read("1,null,3,4,5"),
      "3: key 'null' of slot 'user' is not a whole number below 2^64; if 'null' means that there "
      "is none, name it in data.csv.missing");
  EXPECT_EQ(read("1,2,3,4,N/A"),
            "9: 'N/A' of dense feature 'price' is not a number; if 'N/A' means that there is none, "
            "name it in data.csv.missing");
  EXPECT_EQ(read("1,2,3|x,4,5"),
            "7: key 'x' of slot 'tags' is not a whole number below 2^64; keys that are words want "
            "text: true of the slot");
  EXPECT_EQ(read("1,2,3:y,4,5"), "7: value 'y' of slot 'tags' is not a number");
  EXPECT_EQ(read("1,2,3,4,five"), "9: 'five' of dense feature 'price' is not a number");
  EXPECT_EQ(read("1,2,3,\"4,5"), "7: a quote that is not closed in its line; a record is one line");
  EXPECT_EQ(read("1,2,3,\"4\"x,5"), "10: text behind the closing quote of a cell");
}

TEST(CsvHeader, NamesTheColumnsOfTheFile) {
  DataOptions o = options();
  o.columns.clear();
  o.weights = true;
  o.csv.weight = "imp";
  o.csv.ignore = {"note"};
  const auto columns = csv_columns("price,imp,\"user\",note,click,tags,city,id", o);
  ASSERT_TRUE(columns.is_ok()) << columns.status().message();
  EXPECT_EQ(columns.value(), (std::vector<std::string>{"price", "weight", "user", "-", "click",
                                                       "tags", "city", "id"}));
  const auto problem = [&](const char* header) {
    return csv_columns(header, o).status().message();
  };
  EXPECT_EQ(problem("price,imp,usr,click,tags,city"),
            "1:1: its 3rd column 'usr' is not declared in the job, did you mean 'user'?; declare "
            "it, or name it in data.csv.ignore");
  EXPECT_EQ(problem("price,imp,user,click,tags"),
            "1:1: has no column 'city', which the job declares; it has: price, imp, user, click, "
            "tags");
  EXPECT_EQ(problem("price,user,click,tags,city"),
            "1:1: has no column 'imp' for data.weights; see data.csv.weight");
  EXPECT_EQ(problem("price,imp,user,user"), "1:1: has two columns 'user'");
  for (const char* separator : {";", "|", " "}) {
    const auto header = fmt::format("click{0}user{0}tags{0}city{0}price{0}imp", separator);
    EXPECT_EQ(problem(header.c_str()),
              fmt::format("1:1: its columns are parted by '{0}', not by ','; say "
                          "data.csv.separator: \"{0}\"",
                          separator));
  }
  EXPECT_EQ(problem("1,2,3,rome,0.5"),
            "1:1: its first line names no column of the job; if that is a record already, say "
            "data.csv.header: false and data.columns, which says what stands where");
  o.weights = false;
  EXPECT_EQ(problem("price,imp,user,click,tags,city"),
            "1:1: its 2nd column 'imp' has weights of examples, but the job does not say "
            "data.weights: true; say it, or name the column in data.csv.ignore");
  o.csv.ignore = {"*"};
  EXPECT_EQ(problem("price,imp,user,click,tags,city,x,y,x"), "");
}

// Files with a header, in blocks of two records, plain and packed: the header is no record, and
// lines are counted with it.
TEST(CsvFiles, TheHeaderIsNoRecord) {
  const TestDirectory folder;
  std::string text = "click,user,tags,city,price\n";
  for (int i = 0; i < 7; ++i) text += fmt::format("1,{},,,\n", i);
  const std::vector<std::string> files = {folder.write("a.csv", text),
                                          folder.write("b.csv.gz", gzip_text(text))};
  DataOptions o = options();
  o.columns.clear();
  o.shuffle = false;
  o.batch_size = 1;
  const auto geometry = Dataset::scan(files, o, 1);
  ASSERT_TRUE(geometry.is_ok()) << geometry.status().message();
  ASSERT_EQ(geometry.value().records(), 14U);
  const auto data = Dataset::open(geometry.value(), o);
  ASSERT_TRUE(data.is_ok()) << data.status().message();
  std::vector<uint64_t> users;
  for (uint32_t b = 0; b < geometry.value().blocks.size(); ++b) {
    const auto block = data.value()->open_block(b, 0);
    ASSERT_TRUE(block.is_ok()) << block.status().message();
    Batch batch;
    for (uint32_t i = 0; i < geometry.value().batches_in(b); ++i) {
      ASSERT_TRUE(block.value()->read_batch(i, &batch).is_ok());
      users.insert(users.end(), batch.keys.begin(), batch.keys.end());
    }
  }
  EXPECT_EQ(users, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6}));
}

TEST(CsvFiles, MistakesNameTheFileAndItsLine) {
  const TestDirectory folder;
  const std::string header = "click,user,tags,city,price\n";
  DataOptions o = options();
  o.columns.clear();
  const auto problem = [&](std::vector<std::string> files) -> std::string {
    const auto geometry = Dataset::scan(files, o, 1);
    if (!geometry.is_ok()) return geometry.status().message();
    const auto data = Dataset::open(geometry.value(), o);
    if (!data.is_ok()) return data.status().message();
    Batch batch;
    return data.value()->open_block(0, 0).value()->read_batch(0, &batch).message();
  };
  const std::string bad = folder.write("a.csv", header + "1,1,,,\n1,x,,,\n");
  EXPECT_EQ(
      problem({bad}),
      bad +
          ":3:3: key 'x' of slot 'user' is not a whole number below 2^64; keys that are words "
          "want text: true of the slot");
  const std::string only = folder.write("b.csv", header);
  EXPECT_EQ(problem({only}), only + ": holds no record; remove it from the data or fill it");
  const std::string other = folder.write("c.csv", "click,tags,user,city,price\n1,,1,,\n");
  EXPECT_EQ(problem({bad, other}), other + ":1:1: its header is not that of " + bad);
}

TEST(CsvOptions, CharactersAreCharacters) {
  DataOptions o = options();
  o.csv.separator = "::";
  EXPECT_EQ(options_problem(o),
            "data.csv.separator: '::' is not one character; allowed: one character, or tab");
  o = options();
  o.csv.list = ",";
  EXPECT_EQ(options_problem(o), "data.csv: separator, quote and list have to differ");
  o = options();
  o.columns.clear();
  o.csv.header = false;
  EXPECT_EQ(options_problem(o),
            "data: csv without a header needs data.columns: what stands where in a line");
  o = options();
  o.columns = {"click", "user", "tags", "city", "dense"};
  EXPECT_EQ(options_problem(o),
            "data.columns: 'dense' is for format multislot; a cell of csv holds one number");
}

}  // namespace
}  // namespace flux
