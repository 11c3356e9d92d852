#include "flux/data/text/writers.h"

#include <gtest/gtest.h>

#include "flux/data/test_files.h"
#include "flux/data/tools/whole_data.h"

namespace flux {
namespace {

// Two examples; the second has an empty slot and a key of all bits.
Batch made_batch(bool values) {
  Batch b;
  b.size = 2;
  b.slots = 2;
  b.dense = 1;
  b.labels = {1, 0};
  b.dense_values = {0.1F, 0};
  b.keys = {7, 5, 5, ~0ULL};
  b.begin = {0, 1, 3, 4, 4};
  if (values) b.values = {1, 0.3F, -2, 1e-7F};
  return b;
}

WrittenSchema made_schema(bool values) {
  WrittenSchema s;
  s.labels = {"label"};
  s.slots = {"user", "tags"};
  s.dense = {"price"};
  s.values = values;
  return s;
}

std::string written(const TextWriter& writer, const WrittenSchema& schema, const Batch& batch,
                    const std::vector<std::string>& names = {"", ""}) {
  std::string text = writer.head == nullptr ? "" : writer.head(schema) + "\n";
  for (uint32_t i = 0; i < batch.size; ++i) {
    const Status status = writer.append(schema, batch, i, names[i], &text);
    EXPECT_TRUE(status.is_ok()) << status.message();
    text += '\n';
  }
  return text;
}

TEST(TextWriters, WriteWhatTheirFormatReads) {
  const TestDirectory folder;
  for (const bool values : {false, true}) {
    WrittenSchema schema = made_schema(values);
    Batch batch = made_batch(values);
    for (const bool dense : {true, false}) {
      if (!dense) {
        schema.dense.clear();
        batch.dense = 0;
        batch.dense_values.clear();
      }
      size_t formats = 0;
      for (const std::string& format : text_writer_names()) {
        const TextWriter& writer = *find_text_writer(format);
        if (!writer.can_hold(schema).is_ok()) continue;
        ++formats;
        DataOptions o;
        o.format = format;
        o.raw_keys = true;
        o.slots = {{"user", "", false, values}, {"tags", "", false, values}};
        o.dense = schema.dense;
        const std::string path = folder.write("a", written(writer, schema, batch));
        const auto data = WholeData::open({path}, o, 1);
        ASSERT_TRUE(data.is_ok()) << format << ": " << data.status().message();
        const Status read = data.value().read([&](const Batch& got) {
          EXPECT_EQ(got.labels, batch.labels) << format;
          EXPECT_EQ(got.keys, batch.keys) << format;
          EXPECT_EQ(got.begin, batch.begin) << format;
          EXPECT_EQ(got.values, batch.values) << format;
          EXPECT_EQ(got.dense_values, batch.dense_values) << format;
          return Status::ok();
        });
        EXPECT_TRUE(read.is_ok()) << format << ": " << read.message();
      }
      EXPECT_EQ(formats, 3U + (values ? 0 : 1) + (dense ? 0 : 1));
    }
  }
}

TEST(TextWriters, SayWhatAFormatCannotHold) {
  const auto problem = [](const char* format, const WrittenSchema& schema) {
    return find_text_writer(format)->can_hold(schema).message();
  };
  WrittenSchema s = made_schema(true);
  EXPECT_EQ(problem("multislot", s), "--to multislot: the format cannot hold values of keys");
  EXPECT_EQ(problem("libffm", s), "--to libffm: the format cannot hold dense features");
  EXPECT_EQ(problem("libsvm", s),
            "--to libsvm: the format cannot hold 2 slots, it has one; libffm and vw have several");
  EXPECT_EQ(problem("criteo_tsv", s),
            "--to criteo_tsv: the format cannot hold this data: it has the label, I1 to I13 and C1 "
            "to C26");
  s.labels = {"click", "buy"};
  EXPECT_EQ(problem("vw", s), "--to vw: the format cannot hold 2 labels");
  s = made_schema(true);
  s.groups = true;
  EXPECT_EQ(problem("vw", s),
            "--to vw: the format cannot hold groups (data.group) that are no slot");
  s.group_slot = "user";
  EXPECT_EQ(problem("vw", s), "");
  s.dense.clear();
  EXPECT_EQ(problem("libffm", s), "");
  s.slots = {"sid"};
  EXPECT_EQ(problem("csv", s), "--to csv: the format cannot hold a column of the name 'sid'");
  s = made_schema(false);
  s.slots[1] = "id";
  EXPECT_EQ(problem("multislot", s), "");
  s.names = true;
  EXPECT_EQ(
      problem("multislot", s),
      "--to multislot: the format cannot hold a feature of the name 'id', which is the column "
      "of names there");
  Batch zero = made_batch(false);
  zero.keys[0] = 0;
  std::string text;
  EXPECT_EQ(find_text_writer("multislot")->append(made_schema(false), zero, 0, "", &text).message(),
            "--to multislot: the format cannot hold the key 0 of slot 'user': it is padding there");
}

TEST(TextWriters, TheJobFindsGroupsWhereTheLinesHaveThem) {
  WrittenSchema s = made_schema(false);
  s.groups = true;
  s.group_slot = "user";
  for (const std::string& format : text_writer_names()) {
    if (format == "criteo_tsv") continue;  // has none
    const std::string section = written_data_section(s, format, "a");
    const bool by_slot = format == "vw" || format == "libffm";
    EXPECT_NE(std::string::npos, section.find(by_slot ? "  group: user\n" : "  group: sid\n"))
        << section;
  }
}

// In every format that has them: of both examples, of one, of none.
TEST(TextWriters, NamesAreThoseThatTheirFormatReads) {
  const TestDirectory folder;
  const Batch batch = made_batch(false);
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a7", "b|'8,\"x"}, {"", "'b"}, {"", ""}}) {
    size_t formats = 0;
    for (const std::string& format : text_writer_names()) {
      const TextWriter& writer = *find_text_writer(format);
      WrittenSchema schema = made_schema(false);
      schema.names = writer.names == TextWriter::kNameColumn && names[1] != "";
      if (writer.names == TextWriter::kNoNames) continue;
      if (format == "vw" && names[1].find('|') != std::string::npos) continue;
      ++formats;
      DataOptions o;
      o.format = format;
      o.raw_keys = true;
      o.slots = {{"user", ""}, {"tags", ""}};
      o.dense = schema.dense;
      if (format == "multislot" && schema.names)
        o.columns = {"label", "id", "user", "tags", "dense"};
      const std::string text = written(writer, schema, batch, names);
      const auto data = WholeData::open({folder.write("a", text)}, o, 1);
      ASSERT_TRUE(data.is_ok()) << format << ": " << data.status().message();
      const Status read = data.value().read_named([&](const Batch& got, const auto& found) {
        EXPECT_EQ(got.keys, batch.keys) << text;
        EXPECT_EQ(found, names) << text;
        return Status::ok();
      });
      EXPECT_TRUE(read.is_ok()) << text << read.message();
      const auto any = data.value().has_names();
      ASSERT_TRUE(any.is_ok()) << any.status().message();
      EXPECT_EQ(any.value(), names[1] != "") << text;
    }
    EXPECT_EQ(formats, names[1].find('|') != std::string::npos ? 3U : 4U);
  }
}

TEST(TextWriters, ANameThatWouldBeReadAsSomethingElseIsRefused) {
  const auto problem = [](const char* format, const char* name) {
    std::string text;
    return find_text_writer(format)
        ->append(made_schema(false), made_batch(false), 0, name, &text)
        .message();
  };
  for (const char* format : {"feasign", "multislot", "vw"})
    EXPECT_TRUE(problem(format, "a b")
                    .starts_with(fmt::format(
                        "--to {}: the format cannot hold the name 'a b' of an example: ", format)));
  EXPECT_NE(problem("vw", "a|b"), "");
  EXPECT_EQ(problem("multislot", "-"),
            "--to multislot: the format cannot hold the name '-' of an example: it means none");
  EXPECT_EQ(problem("csv", "a b,\"c"), "");
}

}  // namespace
}  // namespace flux
