// Files that are not what they should be: foreign ones, packed in unknown ways, with a byte order
// mark.
#include <gtest/gtest.h>

#include "flux/data/dataset.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

using namespace std::string_view_literals;

DataOptions feasign(uint32_t batch_size) {
  DataOptions options;
  options.format = "feasign";
  options.slots = {{"user", ""}};
  options.batch_size = batch_size;
  return options;
}

// `count` lines, the first of them good ones.
std::string lines(size_t count, size_t good, const std::string& bad = "") {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += (i < good ? fmt::format("{} user:{}", i % 2, i * 31) : bad) + "\n";
  return out;
}

std::unique_ptr<Dataset> open_all(const std::vector<std::string>& files,
                                  const DataOptions& options) {
  const auto geometry = Dataset::scan(files, options, 2);
  EXPECT_TRUE(geometry.is_ok()) << geometry.status().message();
  if (!geometry.is_ok()) return nullptr;
  auto data = Dataset::open(geometry.value(), options);
  EXPECT_TRUE(data.is_ok()) << data.status().message();
  return data.is_ok() ? std::move(data).value() : nullptr;
}

// What the last block of some files is refused with.
std::string refusal_of_last_block(const std::vector<std::string>& files) {
  const auto data = open_all(files, feasign(10));
  if (data == nullptr) return "";
  const auto last = static_cast<uint32_t>(data->geometry().blocks.size() - 1);
  const auto block = data->open_block(last, 0);
  EXPECT_TRUE(block.is_ok()) << block.status().message();
  Batch batch;
  return block.value()->read_batch(0, &batch).message();
}

TEST(OddFiles, AForeignOneIsNamedByItsFirstLine) {
  const TestDirectory dir;
  const std::string good = dir.write("good.txt", lines(3000, 3000));
  const std::string words = lines(3000, 0, "some words");
  for (const std::string& path :
       {dir.write("bad.txt", words), dir.write("bad.gz", gzip_text(words))})
    EXPECT_EQ(refusal_of_last_block({good, path}).rfind(path + ":1:1: label 'some'", 0), 0U);
}

TEST(OddFiles, TheFirstMistakeOfAShuffledBlockIsTold) {
  const TestDirectory dir;
  const std::string path = dir.write("some.txt", lines(3000, 2980, "1 user:x"));
  EXPECT_EQ(refusal_of_last_block({path}).rfind(path + ":2981:8: ", 0), 0U);
}

std::vector<uint64_t> keys_of(const Dataset& data) {
  std::vector<uint64_t> keys;
  for (uint32_t b = 0; b < data.geometry().blocks.size(); ++b) {
    const auto block = data.open_block(b, 0);
    EXPECT_TRUE(block.is_ok()) << block.status().message();
    for (uint32_t i = 0; block.is_ok() && i < data.geometry().batches_in(b); ++i) {
      Batch batch;
      const Status status = block.value()->read_batch(i, &batch);
      EXPECT_TRUE(status.is_ok()) << status.message();
      keys.insert(keys.end(), batch.keys.begin(), batch.keys.end());
    }
  }
  return keys;
}

TEST(OddFiles, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const TestDirectory dir;
  const std::string text = lines(300, 300), marked = "\xef\xbb\xbf" + text;
  const auto want = open_all({dir.write("a.txt", text)}, feasign(7));
  ASSERT_NE(want, nullptr);
  for (const std::string& path :
       {dir.write("b.txt", marked), dir.write("b.gz", gzip_text(marked))}) {
    const auto data = open_all({path}, feasign(7));
    ASSERT_NE(data, nullptr) << path;
    EXPECT_EQ(keys_of(*data), keys_of(*want)) << path;
  }
  const std::string alone = dir.write("alone.txt", "\xef\xbb\xbf");
  EXPECT_EQ(Dataset::scan({&alone, 1}, feasign(7), 1).status().message(),
            alone + ": holds no record; remove it from the data or fill it");
}

TEST(OddFiles, WhatIsNoTextIsNamed) {
  const TestDirectory dir;
  const auto refusal = [&](std::string_view text) {
    const std::string path = dir.write("a.txt", text);
    const Status status = Dataset::scan({&path, 1}, feasign(7), 1).status();
    return status.is_ok() ? "good" : status.message().substr(path.size());
  };
  EXPECT_EQ(refusal("\xfd"
                    "7zXZ\0\0\x04\xe6\xd6"sv),
            ": is packed with xz, which is not read; unpack it, or say data.pipe: [xz, -dc]");
  EXPECT_EQ(refusal("BZh91AY&SY\x1b"sv),
            ": is packed with bzip2, which is not read; unpack it, or say data.pipe: [bzip2, -dc]");
  EXPECT_EQ(refusal("BZh9 is a word\n"sv), "good");
  EXPECT_EQ(refusal("PAR1\x15\x04"sv), ": is a Parquet file; say data.format: parquet");
  EXPECT_EQ(refusal("FLUXBLK1\x15\x04"sv), ": is a block file; say data.format: blocks");
  EXPECT_EQ(refusal("\xff\xfe\x31\0"sv),
            ": is text in UTF-16, which is not read; save it as UTF-8");
}

}  // namespace
}  // namespace flux
