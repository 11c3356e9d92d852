// Lines from the front of files, whole and damaged ones, against the text that they were made of.
#include "flux/data/sources/line_stream.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flux/data/criteo.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

std::string lines(int from, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("line number {}\n", from + i);
  return text;
}

class LineStreamTest : public testing::Test {
 protected:
  std::unique_ptr<LineStream> open(const std::string& name, const std::string& bytes,
                                   const PipeOptions& pipe = {}) {
    auto stream = LineStream::open(dir_.write(name, bytes), pipe);
    FLUX_CHECK(stream.is_ok(), "{}", stream.status().message());
    return std::move(stream).value();
  }
  static std::string next(LineStream* stream, uint64_t lines_max) {
    const auto got = stream->next(lines_max);
    return got.is_ok() ? std::string(got.value()) : "failed";
  }
  TestDirectory dir_;
};

TEST_F(LineStreamTest, AsManyAsAreWanted) {
  for (const bool packed : {false, true}) {
    const std::string text = "\xef\xbb\xbf" + lines(0, 5000) + "the end";
    const auto stream = open("a", packed ? gzip_text(text) : text);
    EXPECT_EQ(stream->packed(), packed);
    EXPECT_EQ(next(stream.get(), 0), "");
    EXPECT_EQ(next(stream.get(), 2), lines(0, 2));
    EXPECT_EQ(next(stream.get(), 4000), lines(2, 4000));
    EXPECT_EQ(stream->lines(), 4002U);
    EXPECT_EQ(next(stream.get(), 4000), lines(4002, 998) + "the end");
    EXPECT_EQ(next(stream.get(), 1), "");
    EXPECT_EQ(stream->lines(), 5001U);
  }
}

TEST_F(LineStreamTest, WholeLinesBeforeADamageAreGood) {
  const std::string packed = gzip_text(lines(0, 5000));
  const auto stream = open("a.gz", packed.substr(0, packed.size() / 2));
  EXPECT_EQ(next(stream.get(), 3), lines(0, 3));
  const std::string rest = next(stream.get(), 5000);
  EXPECT_GT(stream->lines(), 100U);
  EXPECT_LT(stream->lines(), 5000U);
  EXPECT_EQ(rest, lines(3, static_cast<int>(stream->lines()) - 3));
  EXPECT_EQ(stream->next(1).status().code(), Code::kCorrupt);
  EXPECT_EQ(stream->next(1).status().code(), Code::kCorrupt) << "and again";
}

TEST_F(LineStreamTest, ACommandThatNeverEndsIsReadNoFurther) {
  PipeOptions pipe;
  pipe.command = {"yes", "word"};
  EXPECT_EQ(next(open("a", "x", pipe).get(), 2), "word\nword\n");
}

TEST_F(LineStreamTest, ALineThatIsTooLong) {
  const auto stream = open("a", lines(0, 1) + std::string(2 * kCriteoLineBytesMax, 'x'));
  EXPECT_EQ(next(stream.get(), 5), lines(0, 1));
  const Status status = stream->next(1).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("a:2:1: line is longer than"), std::string::npos)
      << status.message();
}

TEST_F(LineStreamTest, AnEmptyFileHasNone) {
  EXPECT_EQ(next(open("a", "").get(), 3), "");
}

}  // namespace
}  // namespace flux
