// A plain file that is changed, in every way, between a scan and a read.
#include "flux/data/sources/plain_file.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "flux/data/dataset.h"
#include "flux/data/test_files.h"

namespace flux {
namespace {

// Long enough for several chunks that are hashed.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 3 * kHashedBytes; ++i)
    text += fmt::format("{} user:{}\n", i % 2, 1000 + i % 97);
  return text;
}

class PlainFileTest : public testing::Test {
 protected:
  PlainFileTest() : path_(dir_.write("a.txt", text_)) {
    options_.format = "feasign";
    options_.slots.resize(1);
    options_.slots[0].name = "user";
    const auto cut = Dataset::scan({&path_, 1}, options_, 2);
    FLUX_CHECK(cut.is_ok(), "{}", cut.status().message());
    cut_ = cut.value().files[0];
  }
  // The text of the file in place of the one that was cut, with another time of change.
  void replace(const std::string& text) {
    dir_.write("a.txt", text);
    const auto time = std::filesystem::last_write_time(path_);
    std::filesystem::last_write_time(path_, time + std::chrono::seconds(++seconds_));
  }
  Status read(PlainFile* file) {
    std::string out(1000, ' ');
    const Status status = file->read(5000, out.size(), out.data());
    EXPECT_TRUE(!status.is_ok() || out == text_.substr(5000, 1000));
    return status;
  }

  const TestDirectory dir_;
  const std::string text_ = long_text();
  const std::string path_;
  DataOptions options_;
  DataFile cut_;
  int seconds_ = 0;
};

TEST_F(PlainFileTest, ReadsWhatTheScanSaw) {
  PlainFile file(cut_);
  EXPECT_TRUE(read(&file).is_ok());
  replace(text_);
  EXPECT_TRUE(read(&file).is_ok()) << "the same text, written anew";
}

TEST_F(PlainFileTest, OneOtherByteAnywhereIsNoticed) {
  for (const size_t at : {size_t{0}, size_t{kHashedBytes}, text_.size() - 2}) {
    PlainFile file(cut_);
    EXPECT_TRUE(read(&file).is_ok());
    std::string other = text_;
    other[at] = other[at] == '7' ? '8' : '7';
    replace(other);
    const Status status = read(&file);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_NE(status.message().find(path_ + ": has other content"), std::string::npos);
    EXPECT_EQ(read(&file).code(), Code::kInvalid) << "also the next time";
    replace(text_);
    EXPECT_TRUE(read(&file).is_ok()) << "it was put back";
  }
}

TEST_F(PlainFileTest, OtherSizesAreNamed) {
  PlainFile file(cut_);
  for (const std::string& other : {text_.substr(0, text_.size() / 2), text_ + "1 user:5\n"}) {
    replace(other);
    const Status status = read(&file);
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_NE(status.message().find(": is "), std::string::npos) << status.message();
  }
  std::filesystem::remove(path_);
  EXPECT_EQ(read(&file).code(), Code::kNotFound);
}

// Data that workers have on their own disks, copied at other times.
TEST_F(PlainFileTest, AnotherTimeIsLookedIntoOnce) {
  const Geometry cut = Dataset::scan({&path_, 1}, options_, 1).value();
  replace(text_);
  const auto data = Dataset::open(cut, options_);
  ASSERT_TRUE(data.is_ok()) << data.status().message();
  EXPECT_NE(data.value()->geometry().files[0].modified_ns, cut.files[0].modified_ns);
  EXPECT_EQ(data.value()->geometry().hash(), cut.hash());
  EXPECT_TRUE(data.value()->open_block(0, 0).is_ok());
}

}  // namespace
}  // namespace flux
