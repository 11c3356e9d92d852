#include "flux/base/text.h"

#include <gtest/gtest.h>

#include "flux/base/bytes.h"
#include "flux/base/hash.h"

namespace flux {
namespace {

TEST(Text, NearestNameSuggestsOnlyWhatIsNear) {
  const std::vector<std::string> names = {"learning_rate", "output", "precision"};
  EXPECT_EQ(nearest_name("outptu", names), "output");
  EXPECT_EQ(nearest_name("precison", names), "precision");
  EXPECT_EQ(nearest_name("zebra", names), "");
  const std::vector<std::string> short_names = {"a", "bash", "u1", "adam", "embedding"};
  for (const char* unlike : {"", "z", "zz", "tcsh", "b", "emx"})
    EXPECT_EQ(nearest_name(unlike, short_names), "") << unlike;
  EXPECT_EQ(nearest_name("aa", short_names), "a");
  EXPECT_EQ(nearest_name("u2", short_names), "u1");
  EXPECT_EQ(nearest_name("adm", short_names), "adam");
  EXPECT_EQ(nearest_name("bsah", short_names), "bash");
  EXPECT_EQ(nearest_name("emb", short_names), "embedding");
  EXPECT_EQ(did_you_mean("ouput", names), ", did you mean 'output'?");
}

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(counted(1, "table"), "1 table");
  EXPECT_EQ(counted(0, "table"), "0 tables");
  EXPECT_EQ(counted(2000, "table"), "2,000 tables");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_seconds(75), "1m15s");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Bytes, ReaderNeverPassesTheEnd) {
  ByteWriter writer;
  writer.put<uint32_t>(7);
  writer.text("abc");
  ByteReader reader(writer.str());
  EXPECT_EQ(reader.get<uint32_t>(), 7U);
  EXPECT_EQ(reader.text(16), "abc");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.get<uint64_t>(), 0U);
  EXPECT_FALSE(reader.ok());
}

TEST(Bytes, ReaderRefusesALengthBeyondItsMaximum) {
  ByteWriter writer;
  writer.text("abcdef");
  ByteReader reader(writer.str());
  EXPECT_EQ(reader.text(3), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Hash, StreamEqualsWhole) {
  std::string text(5000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  StreamHasher hasher;
  hasher.update(text.data(), 1234);
  hasher.update(text.data() + 1234, text.size() - 1234);
  EXPECT_EQ(hasher.digest(), hash_bytes(text));
}

}  // namespace
}  // namespace flux
